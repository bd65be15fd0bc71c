// The channel of a controller's process to its supervisor: says that it lives, carries what clearance asks and is answered
// (supervisor/clearance.ts), and ends the process at once when the supervisor is gone.

import { systemClock } from "../../drivers/system/clock.ts";
import type { Clearance } from "../../ports/clearance.ts";
import type { Logger } from "../../ports/logger.ts";
import { type FromController, SupervisedClearance } from "../../supervisor/index.ts";
import { CONTROLLER_ALIVE_MS } from "./limits.ts";

/** Set by the supervisor. Whoever else holds a channel to a controller (`npm start`, tests) is no supervisor. */
export const SUPERVISED = "TENURE_SUPERVISED";

export interface Supervised {
  readonly clearance: Clearance;
  /** It serves. */
  up(): void;
}

export function isSupervised(): boolean {
  return process.env[SUPERVISED] === "1" && process.send !== undefined;
}

export function followSupervisor(logger: Logger): Supervised {
  // Also while it is not up yet: whoever reads a long log is no hung one.
  setInterval(() => tell({ kind: "alive" }), CONTROLLER_ALIVE_MS).unref();
  // A leader without supervisor could not clear its node; a standby would have nobody to start it again.
  process.once("disconnect", () => process.kill(process.pid, "SIGKILL"));
  process.channel?.unref();
  const clearance = new SupervisedClearance({
    tell,
    clock: systemClock,
    logger,
    nowNs: () => process.hrtime.bigint(),
  });
  process.on("message", (message) => clearance.heard(message));
  return { clearance, up: () => tell({ kind: "up" }) };
}

function tell(message: FromController): void {
  // Where nobody listens any more, "disconnect" ends this process.
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
}
