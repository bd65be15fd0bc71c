// The two processes of a node, as its supervisor handles them.

export type ChildPart = "controller" | "agent";

export interface ChildExit {
  /** One of the two is null. */
  readonly code: number | null;
  readonly signal: string | null;
}

export interface ChildEvents {
  /** What it said: nothing is known of its form. */
  told(message: unknown): void;
  /** Also where it could not be started. Told once. */
  exited(how: ChildExit): void;
}

export interface Child {
  readonly pid: number | null;
  /** On the clock that all processes of the machine share: before it could do anything. */
  readonly startedAtNs: bigint;
  send(message: object): void;
  signal(signal: "SIGTERM" | "SIGKILL" | "SIGHUP"): void;
}

export interface Children {
  start(part: ChildPart, events: ChildEvents): Child;
  /**
   * SIGKILL, without grace, to every agent of this node and to everybody that came of one, of earlier supervisors too.
   * Resolves when nobody lives, or nothing helped in time.
   */
  endAgents(): Promise<{ readonly survivors: number; readonly goneAtNs: bigint }>;
}
