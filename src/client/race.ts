// A read at one of several nodes: each gets a short head start before the next is asked too, the first answer wins, and the
// others are given up. It ends early where a node says what any other would say too, such as the leader that the key is wrong.

import { type ErrorCode, ERRORS, TenureError } from "../contract/errors.ts";
import { type Answer, type ClientRequest, exchange, type Line } from "./exchange.ts";
import { HEAD_START_MS } from "./limits.ts";

interface Race {
  readonly response: Response | null;
  readonly refusals: readonly Refusal[];
}

interface Refusal {
  readonly url: string;
  readonly answer: Exclude<Answer, { kind: "ok" }>;
}

export function race(line: Line, urls: readonly string[], request: ClientRequest): Promise<Race> {
  const runners: AbortController[] = [];
  const refusals: Refusal[] = [];
  let headStart: ReturnType<typeof setTimeout> | undefined;
  return new Promise((resolve) => {
    const finish = (response: Response | null, winner: AbortController): void => {
      clearTimeout(headStart);
      // The winner's own body is still to be read.
      for (const runner of runners) if (runner !== winner) runner.abort();
      resolve({ response, refusals });
    };
    const startNext = (): void => {
      clearTimeout(headStart);
      const url = urls[runners.length];
      if (url === undefined) return;
      const runner = new AbortController();
      runners.push(runner);
      headStart = setTimeout(startNext, HEAD_START_MS);
      void exchange({ ...line, signal: AbortSignal.any([line.signal, runner.signal]) }, url, request).then((answer) => {
        if (answer.kind === "ok") {
          finish(answer.response, runner);
          return;
        }
        refusals.push({ url, answer });
        if (refusals.length === urls.length || (answer.kind === "refused" && isFinalAnswer(answer)))
          finish(null, runner);
        else startNext();
      });
    };
    startNext();
  });
}

/** Of what does not depend on who is asked. */
export function isFinal(code: ErrorCode): boolean {
  return !ERRORS[code].retryable;
}

/**
 * What another node would say too. That nobody knows the key is the cluster's word only where its leader says so: another node
 * may not have heard of the key yet (decision 25).
 */
export function isFinalAnswer({ code, fields }: Extract<Answer, { kind: "refused" }>): boolean {
  return isFinal(code) && (code !== "UNAUTHENTICATED" || fields["role"] === "LEADER");
}

/** Of nodes that all said nothing: what is in the way of the first where it is known, for it is what to repair. */
export function silenceCode(codes: readonly (ErrorCode | null)[]): ErrorCode {
  return codes.find((code) => code !== null) ?? "BACKEND_UNAVAILABLE";
}

export function readError(refusals: readonly Refusal[]): TenureError {
  const refused = refusals.flatMap(({ answer }) => (answer.kind === "refused" ? [answer] : []));
  // That the key is unknown only where all that answer say so.
  const said = refused.find(isFinalAnswer) ?? refused.find(({ code }) => code !== "UNAUTHENTICATED") ?? refused[0];
  if (said !== undefined) return new TenureError(said.code, said.message);
  const each = refusals.map(({ url, answer }) => `${url}: ${answer.kind === "silent" ? answer.why : answer.message}`);
  const codes = refusals.flatMap(({ answer }) => (answer.kind === "silent" ? [answer.code] : []));
  return new TenureError(silenceCode(codes), `no node answers: ${each.join("; ")}.`);
}
