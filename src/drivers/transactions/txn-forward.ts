// A client's request, forwarded to the node that leads the coordinators. Once: that node forwards it no further.

import { TenureError } from "../../core/kit/errors.ts";
import { decidedOf, errorOf, outcomeOf, type TxnWireAnswer } from "../../core/txn/wire-answers.ts";
import { forwardedDecide, forwardedRun, type TxnWireCall } from "../../core/txn/wire-calls.ts";
import type { TxnForward } from "../../ports/transactions.ts";
import type { TcHttp } from "../coordinators/index.ts";

export function httpTxnForward(http: Pick<TcHttp, "tried">): TxnForward {
  return {
    run: (endpoint, body, by, withinMs) =>
      forwarded(http, { endpoint, call: forwardedRun(body, by), withinMs, id: body.id }, (answer) =>
        outcomeOf(body.id, answer),
      ),
    decide: (endpoint, request, by, withinMs) =>
      forwarded(http, { endpoint, call: forwardedDecide(request, by), withinMs, id: request.id }, (answer) =>
        decidedOf(request.id, answer),
      ),
  };
}

interface Forwarded {
  readonly endpoint: string;
  readonly call: TxnWireCall;
  readonly withinMs: number;
  readonly id: string;
}

async function forwarded<T>(
  http: Pick<TcHttp, "tried">,
  { endpoint, call, withinMs, id }: Forwarded,
  read: (answer: TxnWireAnswer) => T | null,
): Promise<T | null> {
  const answer = await http.tried({ endpoint, ...call, withinMs, isUnnamed: true });
  if (TenureError.is(answer)) {
    if (isUnsent(answer)) return null;
    throw unknown(id, endpoint, answer);
  }
  const found = read(answer);
  if (found !== null) return found;
  const error = errorOf(answer);
  // What home has recorded holds for both; any other refusal is of the second alone.
  const isOfBoth = answer.isRepeated !== true || error?.code === "txn_fanout_failed";
  throw error !== null && isOfBoth ? error : unknown(id, endpoint, error ?? undefined);
}

function isUnsent(error: TenureError): boolean {
  return "unsent" in error && error.unsent === true;
}

function unknown(id: string, endpoint: string, cause?: TenureError): TenureError {
  const text = `What became of the transaction ${id} is not known: the leader of the coordinators at ${endpoint} did not answer. Repeat it with the same id and content: it is done once, and the answer says what became of it.`;
  return new TenureError("OUTCOME_UNKNOWN", text, { cause });
}
