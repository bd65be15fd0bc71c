/** Commands of jobs as processes of this machine, each with everything that it starts. */
export interface Processes {
  start(command: ProcessCommand): Promise<StartedProcess | RefusedProcess>;
}

export interface ProcessCommand {
  /** The program and its arguments. */
  readonly command: readonly [string, ...string[]];
  readonly environment: Readonly<Record<string, string>>;
  /** Null: where this process is. */
  readonly directory: string | null;
  /** Of one process, not one job's: found again in everything that it starts. */
  readonly cookie: { readonly name: string; readonly value: string };
  /** Asked just before it is started: what it waits for before may take long. */
  readonly mayStart: () => boolean;
  /** In order for each of the two; characters are whole. */
  readonly onOutput: (from: "stdout" | "stderr", text: string) => void;
}

/** It could not be started: no such program, no such directory. */
export interface RefusedProcess {
  readonly kind: "refused";
  readonly message: string;
}

export interface StartedProcess {
  readonly kind: "started";
  readonly pid: number;
  /** The command itself has ended; what it started may live, and its output may be on the way. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null }>;
  /** All that was printed was handed over. Never settles while somebody holds the other end. */
  readonly printed: Promise<void>;
  /** While nobody takes what it prints, it waits in a pipe, and then the command waits. */
  setReading(isReading: boolean): void;
  /** Asks its group to end. */
  terminate(): void;
  /** Kills everything that it started. Resolves when nobody lives, or after `withinMs` with how many do. */
  kill(withinMs: number): Promise<{ readonly survivors: number; readonly killed: number }>;
}
