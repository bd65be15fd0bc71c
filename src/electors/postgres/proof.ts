// `term.fence(run)`: the check inside a transaction that the user's own library has begun, with the proof that it is there
// (trap 77: `run` is the user's function, and may go to a pool, to another session, to a cache or nowhere).
//
//   run(select fence, mark) ──two values, the NONCE──▶ run(show mark) ──one value, the NONCE──▶ proved
//                                         another fence's nonce: once more        anything else: TX_MISUSED
//
// - The mark is a setting that lives exactly as long as the fence's lock: until the transaction ends, or is rolled back to
//   an older savepoint. In autocommit both are gone with the first statement; on another session there was never a mark.
// - The second statement leaves after the answer to the first one has arrived. Sent at once, both could share the implicit
//   transaction of one batch, which ends with them.
// - The nonce is fresh, and the second text does not hold it: an answer from a cache has an older one, an echo has none.
//   The two answers differ in shape: the first one given twice proves nothing.
// - Fences that run concurrently in one transaction overwrite each other's mark; whoever lost is sent again.
//
// Every such transaction pays for it. CPU of backend and Node for one statement, best of 22, PostgreSQL 18: the check alone with
// parameters 133 us, as one text 119, with the mark 131; SHOW 40, SELECT current_setting 55. A mark that keeps all nonces: 152.
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
/** Of so many that run concurrently in one transaction, one succeeds in each round at least. */
const ATTEMPTS_MAX = 64;
const NO_SUCH_SETTING = "42704";
const NONCE = /^[0-9a-f]{16}$/;

export async function fenceThrough(hold: Hold, { sql, nonce }: FenceProof, run: FenceRun): Promise<void> {
  hold.check();
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const own = nonce();
    const fenced = await send(hold, run, sql.requireEpoch(hold.scope, hold.epoch, own));
    if (lastValueOf(fenced, 2) !== own) {
      throw misuse(hold, "run did not send the text that it was given, or did not return what the client answered");
    }
    const mark = lastValueOf(await shown(hold, run, sql.mark), 1);
    if (mark === own) return;
    if (mark === undefined || !NONCE.test(mark)) break;
  }
  throw misuse(hold, "run is not in a transaction, or each of its calls goes to another one");
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

/**
 * Of the first row with so many values, all of them texts: in `{ rows }` of pg, Kysely and Drizzle, in a list of
 * postgres.js, in a list within another.
 */
function lastValueOf(answer: unknown, count: number, depthLeft = DEPTH_MAX): string | undefined {
  if (typeof answer !== "object" || answer === null || depthLeft === 0) return undefined;
  try {
    const inner: readonly unknown[] = Array.isArray(answer)
      ? answer
      : "rows" in answer
        ? [answer.rows]
        : Object.values(answer);
    const last = inner.at(-1);
    if (inner.length === count && typeof last === "string" && inner.every((one) => typeof one === "string"))
      return last;
    for (const one of inner) {
      const found = lastValueOf(one, count, depthLeft - 1);
      if (found !== undefined) return found;
    }
  } catch {
    // A getter or a proxy that throws: it is no answer of a client.
  }
  return undefined;
}

function misuse({ scope, epoch }: Hold, what: string, cause?: unknown): TenureError {
  return new TenureError(
    "TX_MISUSED",
    `term.fence: ${what}. Nothing is fenced for scope "${scope}", epoch ${epoch}: roll back. Inside your transaction, send the text through the transaction's own object (trx, tx, a client after BEGIN) and not through the pool, and return its result.`,
    { cause },
  );
}
