// `term.fence(run)`: the check inside a transaction that the user's own library has begun, with the proof that it is there
// (trap 77: `run` is the user's function, and may go to a pool, to another session, to a cache or nowhere).
//
//   run(call fence) ──done──▶ run(show mark) ──schema, lock key and epoch──▶ proved
//        ▲                          ├──those of another fence: once more
//        └──────────────────────────┘ anything else: TX_MISUSED
//
// - The mark is a setting that the procedure makes and that lives exactly as long as its lock: until the transaction ends, or is
//   rolled back to an older savepoint. In autocommit both are gone with the first statement; on another session there was never a
//   mark. So whoever shows the mark is inside a transaction that holds the fence.
// - The second statement leaves after the first one is done. Sent at once, both could share the implicit transaction of one
//   batch, which ends with them.
// - No text holds the mark, so that an echo proves nothing, and each second text is another one: a cache does not know it.
// - Fences of several scopes that run concurrently in one transaction overwrite each other's mark; whoever lost is sent again.
//
// Every such transaction pays for it. CPU of Postgres and Node for BEGIN, fence, one update and COMMIT, 16 clients, next to the check
// alone with parameters (`select tenure_require_epoch($1, $2)`): 0.9 with CALL alone, 1.09 with CALL and SHOW, 1.16 with CALL and SELECT
// current_setting, 1.20 with the check and set_config in one SELECT, and SHOW.
//
// Not proved, because only the user's code knows: that the writes go through the transaction that `run` uses, and that
// nobody rolls back afterwards to a savepoint which is older than the fence. docs/decisions/0038-proof-of-the-fence.md.

import { TenureError } from "../../../core/kit/errors.ts";
import type { Hold } from "../../../ports/backends/backend.ts";
import { PROOF_ATTEMPTS_MAX, PROOF_DEPTH_MAX } from "../limits.ts";
import { isRefusedWith, staleOr } from "./refusal.ts";

/**
 * Sends the text on the transaction that writes, and resolves with the client's own answer. `values` is always empty: the
 * text holds everything, in a form that every client takes. Pass it on where a client wants it.
 */
export type FenceRun = (text: string, values: never[]) => PromiseLike<unknown>;

/** The texts of one term. */
export interface FenceProof {
  /** Takes the fence, and leaves the mark. */
  readonly call: string;
  readonly mark: string;
  /** Shows the mark; another text each time. */
  readonly show: () => string;
}

const NO_SUCH_SETTING = "42704";
const ANY_MARK = /^"\w+"\/-?\d+\/\d+$/;

export async function fenceThrough(hold: Hold, proof: FenceProof, run: FenceRun): Promise<void> {
  hold.check();
  for (let attempt = 1; attempt <= PROOF_ATTEMPTS_MAX; attempt++) {
    await send(hold, run, proof.call);
    const mark = onlyValueOf(await shown(hold, run, proof.show()));
    if (mark === proof.mark) return;
    if (mark === undefined) {
      throw misuse(hold, "run did not send the text that it was given, or did not return what the client answered");
    }
    if (!ANY_MARK.test(mark)) break;
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

/** Of the first row with one text and nothing else: in `{ rows }` of pg, Kysely and Drizzle, in a list of postgres.js, in a list within another. */
function onlyValueOf(answer: unknown, depthLeft = PROOF_DEPTH_MAX): string | undefined {
  if (typeof answer !== "object" || answer === null || depthLeft === 0) return undefined;
  try {
    const inner: readonly unknown[] = Array.isArray(answer)
      ? answer
      : "rows" in answer
        ? [answer.rows]
        : Object.values(answer);
    const [only] = inner;
    if (inner.length === 1 && typeof only === "string") return only;
    for (const one of inner) {
      const found = onlyValueOf(one, depthLeft - 1);
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
