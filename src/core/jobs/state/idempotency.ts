// The same request under the same key is answered as the first time (design D16). The first event of a mutation carries the
// request, so every node remembers it, for IDEMPOTENCY_MS that leaders have seen pass (skips.ts). Where more keys come than are kept, those
// of whoever has the most go early (key-shares.ts).
//
// What is remembered is which jobs the answer named, not what they looked like: a repeated answer shows them as they are.

import { IDEMPOTENCY_DROPPED_PER_EVENT_MAX, IDEMPOTENCY_MS } from "../../kit/limits.ts";
import type { Request } from "../../../ports/jobs.ts";
import type { JobsEvent, RequestMark } from "../events.ts";
import { keyIdOf } from "./key-shares.ts";
import type { KeyRecord } from "./records.ts";
import { type Times, witnessedMs } from "./skips.ts";
import type { BookState } from "./state.ts";

export type Remembered =
  | { readonly kind: "new" }
  | { readonly kind: "repeated"; readonly jobIds: readonly string[] }
  | { readonly kind: "mismatch" };

const NEW: Remembered = { kind: "new" };

export function recall(state: BookState, request: Request, command: string, times: Times): Remembered {
  if (request.idempotencyKey === null) return NEW;
  const known = state.keys.get(keyIdOf(request.caller, request.idempotencyKey));
  if (known === undefined || witnessedMs(state, known.atMs, times) >= IDEMPOTENCY_MS) return NEW;
  if (known.bodyHash !== request.bodyHash || known.command !== command) return { kind: "mismatch" };
  return { kind: "repeated", jobIds: known.jobIds.split(",") };
}

/** What the first event of a mutation carries of its request; nothing without a key. */
export function markOf(
  { caller, idempotencyKey: key, bodyHash }: Request,
  command: string,
  jobIds?: readonly string[],
): { request?: RequestMark } {
  if (key === null) return {};
  const mark = { caller, key, bodyHash, command };
  return { request: jobIds === undefined || jobIds.length === 1 ? mark : { ...mark, jobIds } };
}

/** After each event: remembers its request, if it carries one, and drops keys that are too old. */
export function remember(state: BookState, event: JobsEvent, atMs: number): void {
  const mark = event.payload["request"] as unknown as RequestMark | undefined;
  if (mark !== undefined) {
    const { caller, key, bodyHash, command, jobIds } = mark;
    const id = keyIdOf(caller, key);
    const { sequence, entityId } = event;
    state.keys.set(id, { id, bodyHash, command, jobIds: jobIds?.join(",") ?? entityId, atMs, sequence });
    const { keysMax, keyBytesMax } = state.limits;
    while (state.keys.size > keysMax || (state.keyBytes > keyBytesMax && state.keys.size > 1)) {
      drop(state, state.keyShares.next);
      state.keysDroppedEarly++;
    }
  }
  for (let dropped = 0; dropped < IDEMPOTENCY_DROPPED_PER_EVENT_MAX; dropped++) {
    const oldest = state.keysByAge.first;
    if (oldest === undefined || oldest.atMs + IDEMPOTENCY_MS > atMs) return;
    if (witnessedMs(state, oldest.atMs, { nowMs: atMs, skippedMs: 0 }) < IDEMPOTENCY_MS) return;
    drop(state, oldest);
  }
}

function drop(state: BookState, key: KeyRecord | undefined): void {
  if (key !== undefined) state.keys.set(key.id, undefined);
}
