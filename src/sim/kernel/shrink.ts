// Makes a failing plan small: delta debugging (Zeller & Hildebrandt, "ddmin") over its list of faults.
// Invariant: what is returned failed when it was tried, or is the plan that came in; when the budget was enough,
// no single fault can be left out of it.

export interface Shrunk<F> {
  readonly plan: readonly F[];
  readonly tries: number;
  /** No single fault can be left out; false when the budget ended first. */
  readonly minimal: boolean;
}

export async function shrink<F>(
  plan: readonly F[],
  stillFails: (plan: readonly F[]) => Promise<boolean>,
  budget: number,
): Promise<Shrunk<F>> {
  let current = plan;
  let tries = 0;
  let parts = 2;
  while (current.length > 0) {
    const size = Math.ceil(current.length / parts);
    let reduced: readonly F[] | undefined;
    for (let from = 0; from < current.length && reduced === undefined; from += size) {
      if (tries >= budget) return { plan: current, tries, minimal: false };
      const rest = current.filter((_fault, index) => index < from || index >= from + size);
      tries++;
      if (await stillFails(rest)) reduced = rest;
    }
    if (reduced !== undefined) {
      current = reduced;
      parts = Math.max(2, parts - 1);
    } else if (size === 1) {
      break;
    } else {
      parts = Math.min(current.length, parts * 2);
    }
  }
  return { plan: current, tries, minimal: true };
}
