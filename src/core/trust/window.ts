// The trust window: how long a leader may act without another word from the backend.
//
//   request sent                     answer          gate closes     the server may give the scope away
//   ├──────────────────────────────────┤ ······ acts ······ │─ margin ─│
//   sentAt                                                             sentAt + serverTimeoutMs
//
// Invariants: the window starts when the request was sent, never when its answer came (trap 44); it is closed as soon
// as either clock says so, because monotonic time stands still while a machine sleeps and wall time may be set
// back (trap 45); it is evaluated at the call, never cached (trap 34); a later proof never shortens it.

/** One moment on both clocks of one process. */
export interface Instant {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export interface Timing {
  /** The server gives the scope to nobody else for at least so long after it received the last proof of the hold. */
  readonly serverTimeoutMs: number;
  /** What trust ends earlier than the server: for clocks that run at different rates, and for effects under way. */
  readonly marginMs: number;
  readonly heartbeatMs: number;
  /** Between two attempts that failed: jittered, doubling from the one to the other. */
  readonly retryMinMs: number;
  readonly retryMaxMs: number;
  /** How long a leader that resigned stays away, so that another goes first. */
  readonly holdBackMs: number;
  /** How long letting go may take before the session is destroyed instead. */
  readonly releaseTimeoutMs: number;
}

/** When trust ends, on both clocks. */
export type Deadline = Instant;

export function deadlineOf(sentAt: Instant, lastsMs: number): Deadline {
  return { monotonicMs: sentAt.monotonicMs + lastsMs, wallMs: sentAt.wallMs + lastsMs };
}

/**
 * What is left: the smaller of what the two clocks leave, never below 0. Plain numbers, because the gate asks this
 * before each effect and an object for each call would cost more than the rest.
 */
export function remainingMs(deadline: Deadline, monotonicMs: number, wallMs: number): number {
  const left = Math.min(deadline.monotonicMs - monotonicMs, deadline.wallMs - wallMs);
  return left > 0 ? left : 0;
}

/** Answers may come out of order: the proof that was sent last counts. */
export function latest(a: Instant, b: Instant): Instant {
  return b.monotonicMs > a.monotonicMs ? b : a;
}

export function trustMs(timing: Timing): number {
  return timing.serverTimeoutMs - timing.marginMs;
}
