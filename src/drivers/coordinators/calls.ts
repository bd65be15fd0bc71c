// What coordinators ask each other, over HTTP. A call is sent once; an answer that is none of this protocol is no answer, whatever its status.

import { answerOf } from "../../core/lease/wire-answers.ts";
import { callOf } from "../../core/lease/wire-calls.ts";
import type { Answered, CoordinatorCalls, CoordinatorRequest } from "../../ports/coordinators.ts";
import type { TcTransport } from "./transport.ts";

export function coordinatorCalls(http: TcTransport): CoordinatorCalls {
  return {
    call: async <R extends CoordinatorRequest>(endpoint: string, request: R, withinMs: number) => {
      const exchanged = await http.exchange({ endpoint, ...callOf(request), withinMs }).catch(() => null);
      if (exchanged === null) return null;
      const answer = answerOf(request, exchanged);
      return answer === null ? null : ({ from: exchanged.from, answer } satisfies Answered<R>);
    },
  };
}
