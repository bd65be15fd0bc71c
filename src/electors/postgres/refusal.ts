// What an error that came through a user's own client says. Query builders wrap the server's error, each in a place of its
// own; the driver's `code` or `sqlstate` is kept. Users throw anything (trap 80): nothing here throws.

import { StaleEpochError } from "../../core/kit/errors.ts";
import type { Hold } from "../../ports/backend.ts";

const CAUSES_MAX = 8;

type Fields = Readonly<Record<string, unknown>>;

/** The refusal of a fence as StaleEpochError, which ends the term; any other error as it is. */
export function staleOr(hold: Hold, error: unknown): unknown {
  if (StaleEpochError.is(error) || !refuses(error, hold)) return error;
  hold.lost("superseded");
  return new StaleEpochError(hold.scope, hold.epoch, { cause: error });
}

/** Whether a fence refused this hold: another scope's fence may be called in the same transaction. */
function refuses(error: unknown, { scope, epoch }: Hold): boolean {
  return isIn(error, (one) => {
    if (one["code"] !== "TN001" && one["sqlstate"] !== "TN001") return false;
    const detail = one["detail"];
    return typeof detail !== "string" || detail === `scope "${scope}", epoch ${epoch}`;
  });
}

/** Whether the server gave this SQLSTATE. */
export function isRefusedWith(error: unknown, sqlstate: string): boolean {
  return isIn(error, (one) => one["code"] === sqlstate || one["sqlstate"] === sqlstate);
}

/** Whether the error, or one that it wraps, is what is looked for. */
export function isIn(error: unknown, matches: (one: Fields) => boolean, causesLeft = CAUSES_MAX): boolean {
  if (typeof error !== "object" || error === null || causesLeft === 0) return false;
  try {
    const one = error as Fields;
    if (matches(one)) return true;
    const errors = one["errors"];
    const inner = [one["cause"], one["driverError"], one["original"], one["meta"], ...listOf(errors)];
    return inner.some((next) => isIn(next, matches, causesLeft - 1));
  } catch {
    // A getter or a proxy that throws.
    return false;
  }
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
