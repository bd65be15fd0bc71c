// `term.fence(run)`: the check inside a transaction that the user's own library has begun, with the proof that it is there
// (trap 77: `run` is the user's function, and may go to a pool, to another session, to a cache or nowhere).
//
//   run(select fence, mark) ──"fenced:NONCE"──▶ run(show mark) ──"NONCE …"──▶ proved        anything else ──▶ TX_MISUSED
//
// - The mark is a setting that lives exactly as long as the fence's lock: until the transaction ends, or is rolled back to
//   an older savepoint. In autocommit both are gone with the first statement; on another session there was never a mark.
// - The second statement leaves after the answer to the first one has arrived. Sent at once, both could share the implicit
//   transaction of one batch, which ends with them.
// - The nonce is fresh, and the second text does not hold it: an answer from a cache has older ones, an echo has none.
//   The two answers differ: the first one given twice proves nothing.
// - The mark keeps the latest nonces of its transaction: fences that run concurrently in one do not hide each other's.
//
// Not proved, because only the user's code knows: that the writes go through the transaction that `run` uses, and that
// nobody rolls back afterwards to a savepoint which is older than the fence. docs/decisions/0038-proof-of-the-fence.md.

import { TenureError } from "../../core/kit/errors.ts";
import type { Hold } from "../../ports/backend.ts";
import { isRefusedWith, staleOr } from "./refusal.ts";
import type { statements } from "./schema.ts";

/**
 * Sends the text on the transaction that writes, and resolves with the client's own answer. `values` is always empty: the
 * text holds everything, in a form that every client takes. Pass it on where a client wants it.
 */
export type FenceRun = (text: string, values: never[]) => PromiseLike<unknown>;

export interface FenceProof {
  readonly sql: Pick<ReturnType<typeof statements>, "requireEpoch" | "mark">;
  /** Sixteen hexadecimal digits; never the same twice. */
  readonly nonce: () => string;
}

/** Rows inside lists inside results: no client nests them deeper. */
const DEPTH_MAX = 4;
const NO_SUCH_SETTING = "42704";

export async function fenceThrough(hold: Hold, { sql, nonce }: FenceProof, run: FenceRun): Promise<void> {
  hold.check();
  const own = nonce();
  const fenced = await send(hold, run, sql.requireEpoch(hold.scope, hold.epoch, own));
  if (!holds(fenced, (text) => text === `fenced:${own}`)) {
    throw misuse(hold, "run did not send the text that it was given, or did not return what the client answered");
  }
  if (!holds(await shown(hold, run, sql.mark), (text) => text.split(" ").includes(own))) {
    throw misuse(hold, "run is not in a transaction, or each of its calls goes to another one");
  }
}

/** A session that never had a mark does not know the setting. */
async function shown(hold: Hold, run: FenceRun, text: string): Promise<unknown> {
  try {
    return await send(hold, run, text);
  } catch (error) {
    if (!isRefusedWith(error, NO_SUCH_SETTING)) throw error;
    throw misuse(hold, "the calls of run go to different sessions", error);
  }
}

async function send(hold: Hold, run: FenceRun, text: string): Promise<unknown> {
  try {
    return await run(text, []);
  } catch (error) {
    throw staleOr(hold, error);
  }
}

/** Whether a row of the answer has such a value: `{ rows }` of pg, Kysely and Drizzle, a list of postgres.js, one in another. */
function holds(answer: unknown, matches: (text: string) => boolean, depthLeft = DEPTH_MAX): boolean {
  if (typeof answer === "string") return matches(answer);
  if (typeof answer !== "object" || answer === null || depthLeft === 0) return false;
  try {
    const inner = "rows" in answer && !Array.isArray(answer) ? [answer.rows] : Object.values(answer);
    return inner.some((one) => holds(one, matches, depthLeft - 1));
  } catch {
    // A getter or a proxy that throws: it is no answer of a client.
    return false;
  }
}

function misuse({ scope, epoch }: Hold, what: string, cause?: unknown): TenureError {
  return new TenureError(
    "TX_MISUSED",
    `term.fence: ${what}. Nothing is fenced for scope "${scope}", epoch ${epoch}: roll back. Inside your transaction, send the text through the transaction's own object (trx, tx, a client after BEGIN) and not through the pool, and return its result.`,
    { cause },
  );
}
