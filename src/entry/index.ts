// `tenure`: the library. Backends come by subpath: `tenure/postgres`, `tenure/etcd`, `tenure/testing`.

import { seededRandom } from "../core/kit/random.ts";
import { systemClock } from "../drivers/system/clock.ts";
import { requireNode, warnHost } from "../drivers/system/host.ts";
import type { ElectorOptions } from "../electors/elector-options.ts";
import { ScopeElector } from "../electors/elector.ts";
import type { Elector } from "../ports/elector.ts";

export {
  type ErrorCode,
  NotLeaderError,
  type NotLeaderReason,
  StaleEpochError,
  TenureError,
  VersionConflictError,
} from "../core/kit/errors.ts";
export type { Instant, Timing } from "../core/trust/window.ts";
export type { ElectorOptions } from "../electors/elector-options.ts";
export type { Backend, Beat, Claim, Grant, Hold, LossReason, Seat } from "../ports/backends/backend.ts";
export type { Clock, Timer } from "../ports/clock.ts";
export type {
  CheckOptions,
  Elector,
  ElectorStats,
  EndReason,
  HistogramSnapshot,
  Leader,
  LeaderGate,
  LeadOptions,
  Term,
  Transition,
} from "../ports/elector.ts";
export type { LogFields, Logger } from "../ports/logger.ts";

requireNode();

const uuid = (): string => crypto.randomUUID();

/** An elector for one scope. It connects nothing before it is asked to lead or to observe. */
export function createElector<Extras extends object>(options: ElectorOptions<Extras>): Elector<Extras> {
  return new ScopeElector(options, { clock: systemClock, random: seededRandom(uuid()), uuid, warn: warnHost });
}
