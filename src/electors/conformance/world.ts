// What the suite needs of whoever runs it: backends as several processes would have them, a place where writes are
// checked, and the faults that this place can play. Nothing here knows a test framework.

import type { RunnableCase } from "../../loops/conformance.ts";
import type { Backend } from "../../ports/backends/backend.ts";
import type { Elector, Transition } from "../../ports/elector.ts";

export type Fault = "kill" | "freeze" | "cut";

export interface ConformanceWorld {
  /** The backend as another process would have it: with connections of its own. The same name may come again. */
  readonly create: (name: string) => Backend | Promise<Backend>;
  /** Where writes are checked: refuses (rejects, with StaleEpochError) what is not of the epoch in force. */
  readonly resource: { write(scope: string, epoch: number, value: string): Promise<unknown> };
  /** Moves virtual time. Without it the suite waits in real time. */
  readonly advance?: ((ms: number) => Promise<void>) | undefined;
  /**
   * Whether a killed process frees its scope at once, because a connection carries the hold. Where a lease does, it
   * costs the server timeout.
   */
  readonly killFreesAtOnce?: boolean | undefined;
  /** After so long at most somebody else leads, whatever happened to the leader. By default from the timing. */
  readonly takeoverMs?: number | undefined;
  /** The process of this name dies: nothing of it is heard again, and its connections are closed. */
  readonly kill?: ((name: string) => Promise<void>) | undefined;
  /** Its timers and answers stop, its clocks go on. */
  readonly freeze?: ((name: string) => Promise<void>) | undefined;
  readonly thaw?: ((name: string) => Promise<void>) | undefined;
  /** What it sends, and what is sent to it, vanishes without a word. */
  readonly cut?: ((name: string) => Promise<void>) | undefined;
  readonly heal?: ((name: string) => Promise<void>) | undefined;
  readonly dispose: () => Promise<void>;
}

export type ConformanceCase = RunnableCase<Fault>;

export type MakeWorld = () => ConformanceWorld | Promise<ConformanceWorld>;

/** What is given to the suite by its composition root. */
export interface ConformanceTools {
  createElector(options: {
    readonly scope: string;
    readonly backend: Backend;
    readonly identity?: string | undefined;
    readonly metadata?: Readonly<Record<string, string>> | undefined;
    readonly enabled?: boolean | undefined;
    readonly onTransition?: ((transition: Transition) => void) | undefined;
  }): Elector;
  realNowMs(): number;
  realSleep(ms: number): Promise<void>;
}

/** Whether the world can play a fault: one that can be started and, where it has an end, ended. */
export function plays(world: ConformanceWorld, fault: Fault): boolean {
  switch (fault) {
    case "kill":
      return world.kill !== undefined;
    case "freeze":
      return world.freeze !== undefined && world.thaw !== undefined;
    case "cut":
      return world.cut !== undefined && world.heal !== undefined;
    default:
      return fault satisfies never;
  }
}
