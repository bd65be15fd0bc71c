/** What the committed log is folded into. Calls come in log order, one at a time. */
export interface StateMachine {
  /** Must not fail: an entry that makes no sense to the machine is the machine's business to ignore. */
  apply(entry: { readonly index: number; readonly term: number; readonly data: Uint8Array }): void;
  /** A copy of the state as of the last applied entry; taken at once, even if serialising it takes longer. */
  snapshot(): Uint8Array | Promise<Uint8Array>;
  restore(data: Uint8Array): void;
}
