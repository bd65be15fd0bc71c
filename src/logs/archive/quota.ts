// How much of its quota the archive uses (design D12). What follows from it is decided elsewhere: at `alarm` an operator
// is told, at `refuse` new jobs are refused; results never are.

import { assert } from "../../core/kit/assert.ts";

const ALARM_SHARE = 0.8;
const REFUSE_SHARE = 0.95;

export interface Quota {
  readonly usedBytes: number;
  /** Null: there is no quota. */
  readonly quotaBytes: number | null;
  readonly alarmBytes: number | null;
  readonly refuseBytes: number | null;
  readonly level: "ok" | "alarm" | "refuse";
}

export function quotaOf(usedBytes: number, quotaBytes: number | null): Quota {
  if (quotaBytes === null) return { usedBytes, quotaBytes, alarmBytes: null, refuseBytes: null, level: "ok" };
  assert(quotaBytes > 0, "a quota is more than nothing");
  const alarmBytes = Math.floor(quotaBytes * ALARM_SHARE);
  const refuseBytes = Math.floor(quotaBytes * REFUSE_SHARE);
  const level = usedBytes >= refuseBytes ? "refuse" : usedBytes >= alarmBytes ? "alarm" : "ok";
  return { usedBytes, quotaBytes, alarmBytes, refuseBytes, level };
}
