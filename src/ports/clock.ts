/** Time as one process sees it. Monotonic time may run a little fast or slow; wall time may also jump. */
export interface Clock {
  monotonicMs(): number;
  wallMs(): number;
  /** Calls `fire` once at or after `atMs` of the monotonic clock. A frozen process is called when it thaws. */
  setTimer(atMs: number, fire: () => void): Timer;
}

export interface Timer {
  cancel(): void;
}
