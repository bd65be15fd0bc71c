// A node's own copy of the history of events: whether it is whole, and what its tree is, so that the copies of two nodes can be
// compared. Each question goes to one node alone: another one's answer would say nothing about this one's disk.
//
// Not a part of the client that browsers load, which is to stay small: the command line asks this.

import { type ErrorCode, ERRORS, TenureError } from "../contract/errors.ts";
import type { CallOptions } from "./caller.ts";
import { callerWith, type ClientOptions } from "./client.ts";
import { ofOwnLine } from "./rewritten.ts";
import { VERIFY_TIMEOUT_MS } from "./limits.ts";

export type HistoryVerdict =
  | {
      readonly valid: true;
      /** The first that is kept. */
      readonly firstSequence: number;
      /** The last; 0 where there is none. */
      readonly throughSequence: number;
      readonly headHash: string | null;
      /** Of the RFC 6962 tree of all events up to `throughSequence`, hex. */
      readonly root: string;
    }
  | {
      readonly valid: false;
      readonly firstSequence: number;
      readonly firstBrokenSequence: number;
      readonly reason: string;
    };

/** At the URLs that it was given, and no others. */
export interface ClientHistory {
  /** The node at `url` reads every event that it has, and checks it. May take long: a day, where no limit is given. */
  verify(url: string, options?: CallOptions): Promise<HistoryVerdict>;
  /** The root of the tree of the first `size` events, at the node at `url`. LOG_COMPACTED where it can't tell any more. */
  root(url: string, size: number, options?: CallOptions): Promise<string>;
}

export function historyWith(clientOptions: ClientOptions, keyAdvice: string): ClientHistory {
  const caller = callerWith(clientOptions, keyAdvice);
  const ask = async (url: string, path: string, options: CallOptions): Promise<Readonly<Record<string, unknown>>> => {
    const response = await caller.ask(url, { method: "GET", path }, options);
    try {
      return await caller.bodyOf(response);
    } catch (error) {
      options.signal?.throwIfAborted();
      // A read changes nothing, so nothing is unclear: it failed.
      if (!TenureError.is(error) || error.code !== "OUTCOME_UNKNOWN") throw error;
      throw new TenureError("BACKEND_UNAVAILABLE", `${url} ended before it had answered: ${error.message}`, {
        cause: error,
      });
    }
  };
  return {
    verify: async (url, options = {}) => {
      const limited = { timeoutMs: VERIFY_TIMEOUT_MS, ...options };
      const body = await ofOwnLine("/api/events/verify", (path) => ask(url, path, limited));
      if (typeof body["valid"] === "boolean") return body as unknown as HistoryVerdict;
      throw lateError(url, body);
    },
    root: async (url, size, options = {}) => {
      const body = await ask(url, `/v1/events/proof?from_size=${size}`, options);
      if (typeof body["fromRoot"] === "string") return body["fromRoot"];
      throw lateError(url, body);
    },
  };
}

/** What goes wrong when the answer has begun stands where the verdict would, under 200. */
function lateError(url: string, { error, message }: Readonly<Record<string, unknown>>): TenureError {
  const isOurs = typeof error === "string" && Object.hasOwn(ERRORS, error);
  return isOurs
    ? new TenureError(error as ErrorCode, typeof message === "string" ? message : error)
    : new TenureError("BACKEND_UNSUPPORTED", `${url} gave no verdict on its events; is it a Tenure server?`);
}
