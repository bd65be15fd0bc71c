// A list that holds still while somebody points at it or is in it with the keyboard: rows keep their places and show their
// newest state, and what has come since is counted (WCAG 2.2.2). Pure.

interface Row {
  readonly id: string;
}

export interface Held<T> {
  readonly rows: readonly T[];
  /** How many stand before the first that is shown. */
  readonly newer: number;
  /** Let go, the list would show others. */
  readonly hasMoved: boolean;
}

export function heldList<T extends Row>(shown: readonly T[], latest: readonly T[]): Held<T> {
  const fresh = new Map(latest.map((one) => [one.id, one]));
  const ids = new Set(shown.map(({ id }) => id));
  const first = latest.findIndex(({ id }) => ids.has(id));
  return {
    rows: shown.map((one) => fresh.get(one.id) ?? one),
    newer: first < 0 ? latest.length : first,
    hasMoved: shown.length !== latest.length || latest.some(({ id }, at) => id !== shown[at]?.id),
  };
}

/** Null: there is nothing to show. `isFull`: the newer ones fill the page, so there may be more of them. */
export function heldText({ newer, hasMoved }: Pick<Held<Row>, "newer" | "hasMoved">, isFull: boolean): string | null {
  if (newer > 0) return `${newer}${isFull ? " or more" : ""} newer: show them`;
  return hasMoved ? "Others fit now: show them" : null;
}
