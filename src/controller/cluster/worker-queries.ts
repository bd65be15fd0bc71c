// Before a planned transfer the leader asks its successor to end its worker, so that its gate need not wait for that. Best
// effort: a node that does not understand, or does not answer, is cleared when it is elected.

import type { PeerKey } from "../../core/kit/ids.ts";
import type { Clearance } from "../../ports/clearance.ts";
import type { Answering, PeerQueries } from "../../ports/peers/queries.ts";

/** Begins with no number of another query (core/archive). */
const EMPTY_WORKER = new TextEncoder().encode("tenure/empty-worker");
const DONE = Uint8Array.of(1);

/** Resolves when it has ended its worker, or has nothing to say. */
export async function emptyWorker(queries: Pick<PeerQueries, "ask">, peer: PeerKey): Promise<void> {
  await queries.ask(peer, EMPTY_WORKER);
}

/** What a node answers: this question, and all `others`. */
export function withWorkerAnswers(clearance: Pick<Clearance, "empty">, others: Answering): Answering {
  return async (from, query) => {
    if (!isSame(query, EMPTY_WORKER)) return others(from, query);
    return (await clearance.empty()) ? DONE : null;
  };
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}
