// What every server on a real machine is made with, whatever its log is.

import { randomUUID } from "node:crypto";
import { systemClock } from "../../drivers/system/clock.ts";
import { systemDigest } from "../../drivers/system/digest.ts";
import { newJobId } from "../../drivers/system/ids.ts";
import { timeZone } from "../../drivers/system/time-zones.ts";
import { nextFireBy } from "../assembly/schedules.ts";

export const VIEWS_FILE = "views.sqlite";
export const MESH_FILE = "mesh.sqlite";

// The first zone of a process loads the tables of all, which took 74 ms on a busy machine: while the program is loaded, and not in the turn in which
// a new leader looks at its first schedule.
timeZone("UTC");

/** What a node has opened, closed in the end: the last first, and once. A step that fails does not keep the others open. */
export class Closing {
  readonly #steps: (() => Promise<void> | void)[] = [];
  #closed: Promise<void> | null = null;

  push(...steps: readonly (() => Promise<void> | void)[]): void {
    this.#steps.push(...steps);
  }

  all(): Promise<void> {
    return (this.#closed ??= this.#unwind());
  }

  /** It could not be opened whole: why, and nothing that closing it comes upon. */
  async because(why: unknown): Promise<never> {
    await this.all().catch(() => undefined);
    throw why;
  }

  async #unwind(): Promise<void> {
    const failures: unknown[] = [];
    for (const step of this.#steps.toReversed()) {
      try {
        await step();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}

/** What could not go on, said once there is somebody to say it. */
export function failureOf(onFatal: (error: unknown) => void): {
  readonly fail: (error: unknown) => void;
  readonly shownBy: (cluster: { setFailed(reason: string): void }) => void;
} {
  const failure = Promise.withResolvers<unknown>();
  return {
    fail: (error) => {
      failure.resolve(error);
      onFatal(error);
    },
    shownBy: (cluster) =>
      void failure.promise.then((error) => cluster.setFailed(error instanceof Error ? error.message : String(error))),
  };
}

/** By this machine's tables of time zones. */
export const nextFire = nextFireBy(timeZone);

export const SYSTEM = { clock: systemClock, digest: systemDigest, newId: randomUUID, newJobId, nextFire };
