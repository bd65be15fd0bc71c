// What an error that came through a user's own client says. Query builders wrap the server's error, each in a place of its
// own; the driver's `code` or `sqlstate` is kept. Users throw anything (trap 80): nothing here throws.

import { StaleEpochError } from "../../../core/kit/errors.ts";
import type { Hold } from "../../../ports/backends/backend.ts";
import { CAUSES_MAX } from "../../limits.ts";

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

/**
 * Whether the error, or one that it wraps, is what is looked for. Each is read once, nearest first: errors of a batch that
 * name the batch as their cause would be read once for each way that leads to them.
 */
export function isIn(error: unknown, matches: (one: Fields) => boolean): boolean {
  const seen = new Set<unknown>([error]);
  let level: readonly unknown[] = [error];
  for (let causesLeft = CAUSES_MAX; causesLeft > 0 && level.length > 0; causesLeft--) {
    const next: unknown[] = [];
    for (const one of level) {
      const inner = read(one, matches);
      if (inner === "matches") return true;
      for (const wrapped of inner) {
        if (seen.has(wrapped)) continue;
        seen.add(wrapped);
        next.push(wrapped);
      }
    }
    level = next;
  }
  return false;
}

function read(error: unknown, matches: (one: Fields) => boolean): "matches" | readonly unknown[] {
  if (typeof error !== "object" || error === null) return [];
  try {
    const one = error as Fields;
    if (matches(one)) return "matches";
    return [one["cause"], one["driverError"], one["original"], one["meta"], ...listOf(one["errors"])];
  } catch {
    // A getter or a proxy that throws.
    return [];
  }
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
