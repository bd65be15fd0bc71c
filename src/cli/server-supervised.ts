// A controller's side of the channel to its supervisor (supervisor/messages.ts): says that it lives, asks for its node to be
// cleared before it opens its gate, and ends at once when the supervisor is gone.
//
// The stamps in the log are of the clock that all processes of the machine share: "agent-gone" of the supervisor lies before
// "gate-open", and "gate-closed" before the next "agent-started".

import { EMPTIED } from "../core/supervise/node.ts";
import type { Clearance } from "../ports/clearance.ts";
import type { Logger } from "../ports/logger.ts";
import { type FromController, readCleared } from "../supervisor/index.ts";

/** Set by the supervisor. Whoever else holds a channel to a controller (`npm start`, tests) is no supervisor. */
export const SUPERVISED = "TENURE_SUPERVISED";
const ALIVE_EVERY_MS = 500;
/** Longer than a transfer takes; then the worker comes back. */
const EMPTY_MS = 3_000;
/** A supervisor that does not answer an `empty` by then has something else to do. */
const EMPTY_ANSWER_MS = 1_000;
/** After a clearance that came too late: longer than the elections that follow from it. */
const HOLD_MS = 5_000;

export interface Supervised {
  readonly clearance: Clearance;
  /** It serves. */
  up(): void;
}

/** The name under which a node's own worker is known. */
export function workerName(nodeId: string): string {
  return `${nodeId}-worker`;
}

export function isSupervised(): boolean {
  return process.env[SUPERVISED] === "1" && process.send !== undefined;
}

export function followSupervisor(logger: Logger): Supervised {
  // Also while it is not up yet: whoever reads a long log is no hung one.
  setInterval(() => tell({ kind: "alive" }), ALIVE_EVERY_MS).unref();
  // A leader without supervisor could not clear its node; a standby would have nobody to start it again.
  process.once("disconnect", () => process.kill(process.pid, "SIGKILL"));
  process.channel?.unref();
  return { clearance: clearanceOver(logger), up: () => tell({ kind: "up" }) };
}

function tell(message: FromController): void {
  // Where nobody listens any more, "disconnect" ends this process.
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
}

function clearanceOver(logger: Logger): Clearance {
  let asked: { readonly epoch: number; readonly resolve: (isCleared: boolean) => void } | null = null;
  let goneAtNs = "";
  let isOpen = false;
  process.on("message", (message) => {
    const cleared = readCleared(message);
    if (cleared === null || cleared.epoch !== asked?.epoch) return;
    ({ goneAtNs } = cleared);
    asked.resolve(true);
    asked = null;
  });
  const ask = (epoch: number, message: FromController): Promise<boolean> => {
    asked?.resolve(false);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    asked = { epoch, resolve };
    tell(message);
    return promise;
  };
  return {
    clear: (epoch) => ask(epoch, { kind: "clear", epoch }),
    // Whoever leads, or is about to, has asked for more.
    empty: async () => {
      if (asked !== null || isOpen) return false;
      const answer = ask(EMPTIED, { kind: "empty", forMs: EMPTY_MS });
      const forget = setTimeout(() => {
        if (asked?.epoch !== EMPTIED) return;
        asked.resolve(false);
        asked = null;
      }, EMPTY_ANSWER_MS);
      return answer.finally(() => clearTimeout(forget));
    },
    opened: (epoch) => {
      isOpen = true;
      const stamps = { gone_at_ns: goneAtNs, at_ns: String(process.hrtime.bigint()) };
      logger.info(
        { event: "gate-open", epoch, ...stamps },
        `this node leads in epoch ${epoch}, and no worker runs on it`,
      );
    },
    release: (isLate = false) => {
      asked?.resolve(false);
      asked = null;
      if (isOpen) {
        logger.info(
          { event: "gate-closed", at_ns: String(process.hrtime.bigint()) },
          "this node does not lead any more",
        );
      }
      isOpen = false;
      tell({ kind: "released", holdMs: isLate ? HOLD_MS : 0 });
    },
  };
}
