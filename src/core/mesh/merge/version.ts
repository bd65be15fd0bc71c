// Where in a line something was said. A recovery or a restore begins a new generation, which continues the numbers: so the order of what
// one site said is (generation, sequence), and never the order of arrival or of clocks.

export interface Version {
  readonly generation: number;
  readonly sequence: number;
}

export function isLater(a: Version, b: Version): boolean {
  return a.generation > b.generation || (a.generation === b.generation && a.sequence > b.sequence);
}

/** A value and where it was said: of two, the later one stays. So any order, and any repetition, ends in the same one. */
export interface Said {
  readonly at: Version;
}

export function laterOf<T extends Said>(one: T | null, other: T | null): T | null {
  if (one === null || other === null) return one ?? other;
  return isLater(other.at, one.at) ? other : one;
}

/** What was said before `gone` is void. */
export function after<T extends Said>(one: T | null, gone: Version): T | null {
  return one !== null && isLater(one.at, gone) ? one : null;
}
