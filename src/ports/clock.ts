/**
 * Time as one process sees it. Monotonic time may run a little fast or slow; wall time may also jump. Monotonic
 * time goes on while the process is stopped AND while the machine sleeps (trap 45): a driver whose clock stands
 * still then (CLOCK_MONOTONIC does) must add what the wall clock has gained, or a lease outlives itself.
 */
export interface Clock {
  monotonicMs(): number;
  wallMs(): number;
  /** Calls `fire` once at or after `atMs` of the monotonic clock. A frozen process is called when it thaws. */
  setTimer(atMs: number, fire: () => void): Timer;
}

export interface Timer {
  cancel(): void;
}
