// A point in the history of events: the sequence of one, and its hash. A sequence alone does not say of which history it is
// (trap 82): a restored backup or a promoted standby may have another event under the same number.

export interface EventPoint {
  readonly sequence: number;
  /** Lower-case hex; null: not known. */
  readonly hash: string | null;
}

const POINT = /^(\d{1,15})(?::([0-9a-f]{64}))?$/;

/** `57` or `57:9f86…`; null for anything else. */
export function readEventPoint(text: string): EventPoint | null {
  const [, sequence, hash] = POINT.exec(text) ?? [];
  return sequence === undefined ? null : { sequence: Number(sequence), hash: hash ?? null };
}

export function eventPointText({ sequence, hash }: EventPoint): string {
  return hash === null ? String(sequence) : `${sequence}:${hash}`;
}
