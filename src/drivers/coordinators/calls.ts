// What coordinators ask each other, over HTTP. An answer that is none of this protocol is no answer, whatever its status.

import { answerOf } from "../../core/lease/wire-answers.ts";
import { callOf } from "../../core/lease/wire-calls.ts";
import type { Answered, CoordinatorCalls, CoordinatorRequest } from "../../ports/coordinators.ts";
import type { TcHttp } from "./tc-http.ts";

export function coordinatorCalls(http: Pick<TcHttp, "exchange">): CoordinatorCalls {
  return {
    call: async <R extends CoordinatorRequest>(endpoint: string, request: R, withinMs: number) => {
      const exchanged = await http.exchange({ endpoint, ...callOf(request), withinMs });
      if (exchanged === null) return null;
      const answer = answerOf(request, exchanged);
      return answer === null ? null : ({ from: exchanged.from, answer } satisfies Answered<R>);
    },
  };
}
