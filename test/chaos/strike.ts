// One fault: how it is done to the leader, the moment that failover is counted from, and how it is undone after somebody
// else has taken over.

import { assertNever } from "../../src/core/kit/assert.ts";
import type { Random } from "../../src/core/kit/random.ts";
import type { Crew, Member } from "./crew.ts";
import type { FaultKind } from "./faults.ts";
import { PostgresStage } from "./postgres-stage.ts";
import type { Stage } from "./stage.ts";

const SPIN_MS = 5_000;
const BUSY_MS = 8_000;

export interface Strike {
  readonly atMs: number;
  /** Leaves every place with a worker that runs and a network that works. */
  undo(): Promise<void>;
}

export async function strike(
  kind: FaultKind,
  stage: Stage,
  crew: Crew,
  victim: Member,
  random: Random,
): Promise<Strike> {
  const proxy = stage.proxies.at(victim.place);
  const replace = async (): Promise<void> => {
    await victim.endGracefully(crew.findings);
    crew.start(victim.place);
  };
  switch (kind) {
    case "kill-busy":
      victim.order({ do: "busy", ms: BUSY_MS });
      if (stage instanceof PostgresStage) await stage.busy();
      return now(() => victim.kill(), replace);
    case "kill":
    case "kill-stale":
      return now(() => victim.kill(), replace);
    case "term":
      return now(() => victim.terminate(), replace);
    case "stop":
      return now(
        () => victim.stop(),
        async () => victim.resume(),
      );
    case "block": {
      let spun: Promise<void> | undefined;
      return now(
        () => {
          spun = victim.spin(SPIN_MS);
        },
        async () => spun,
      );
    }
    case "cut":
      return now(
        () => proxy.cut("both", random.pick(["unanswered", "refused"])),
        () => proxy.heal("reset"),
      );
    case "half-open":
      return now(
        () => proxy.cut(random.pick(["to-server", "to-client"])),
        () => proxy.heal("resume"),
      );
    case "reset":
      return now(
        () => proxy.reset(),
        async () => undefined,
      );
    case "kill-both": {
      const atMs = await stage.strike("server-kill");
      victim.kill();
      return { atMs, undo: replace };
    }
    case "terminate":
    case "revoke":
    case "server-kill":
    case "server-stop":
    case "restart-fast":
    case "restart-immediate":
    case "restart-kill":
      return { atMs: await stage.strike(kind), undo: async () => undefined };
    default:
      return assertNever(kind, "fault");
  }
}

function now(act: () => void, undo: () => Promise<void>): Strike {
  const atMs = performance.now();
  act();
  return { atMs, undo };
}
