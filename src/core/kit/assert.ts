// Assertions for our own mistakes. They stay on in production: a violated invariant ends the process,
// because a node that no longer knows what is true must not vote, lead or acknowledge.

export class InvariantError extends Error {
  readonly invariant: string;

  constructor(invariant: string, detail: string) {
    super(detail === "" ? `invariant violated: ${invariant}` : `invariant violated: ${invariant}: ${detail}`);
    this.name = "InvariantError";
    this.invariant = invariant;
  }
}

/** `detail` is a function so that the hot path never builds a message it does not need. */
export function assert(condition: boolean, invariant: string, detail?: () => string): asserts condition {
  if (!condition) throw new InvariantError(invariant, detail === undefined ? "" : detail());
}

export function assertNever(value: never, where: string): never {
  throw new InvariantError("exhaustive", `${where}: ${JSON.stringify(value)}`);
}
