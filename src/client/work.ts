// An agent's two calls, as requests: leases and results. What becomes of an attempt is the agent's affair (tenure/agent);
// this only carries. Neither takes a key: results are idempotent by their lease, and what was given in an answer that got
// lost is taken back by the next call that says so (`poll`, `answered`); without those numbers it ends by its time.

import { TenureError } from "../contract/errors.ts";
import { toSnake } from "../contract/snake-case.ts";
import { RENEWAL_ATTEMPT_MS } from "../contract/timeouts.ts";
import type { LeaseAnswer, LeaseCall, LeaseRef, ResultAnswer, ResultCall } from "../ports/jobs.ts";
import type { Caller, CallOptions } from "./caller.ts";

export type { LeaseRef, ResultAnswer as ResultReply, ResultCall as ResultRequest } from "../ports/jobs.ts";

/** `agentEpoch`: as the first answer has it, in every call of this process from then on. */
export type LeaseRequest = Omit<LeaseCall, "caller" | "leaderEpoch">;

/** `agentEpoch` is absent from an older server. */
export type LeaseReply = Omit<LeaseAnswer, "takenFrom">;

export interface ClientWork {
  /** With `max` 0 it only renews and reports, and is repeated where that is safe; with more, it is sent once. */
  lease(request: LeaseRequest, options?: CallOptions): Promise<LeaseReply>;
  /** An answer for each, in order. */
  results(session: string, results: readonly ResultCall[], options?: CallOptions): Promise<readonly ResultAnswer[]>;
}

type WireResult =
  | Extract<ResultAnswer, { ok: true }>
  | (Omit<Extract<ResultAnswer, { ok: false }>, "code"> & {
      readonly error: "STALE_EPOCH" | "NOT_FOUND";
    });

export function workOf(caller: Caller): ClientWork {
  return {
    lease: async ({ agent, agentEpoch, renew, progress, logs, max, waitMs, ttlMs, poll, answered }, options = {}) => {
      const plain = toSnake({
        agent,
        max,
        ttlMs,
        waitMs,
        ...(poll !== undefined && { poll }),
        ...(answered !== undefined && { answered }),
        renew: renew.map((ref) => refOf(ref)),
        progress: progress.map((one) => ({ ...refOf(one), ...one.progress })),
        logs: logs.map((one) => ({ ...refOf(one), ...one.chunk })),
      });
      const request = { method: "POST", path: "/v1/leases", isIdempotent: max === 0 } as const;
      const send = async (body: object): Promise<LeaseReply> =>
        await caller.bodyOf<LeaseReply>(
          await caller.mutate({ ...request, body }, { ...options, attemptMs: options.attemptMs ?? RENEWAL_ATTEMPT_MS }),
        );
      if (agentEpoch === undefined) return await send(plain);
      try {
        return await send({ ...plain, agent_epoch: agentEpoch });
      } catch (error) {
        if (!isOlderServer(error)) throw error;
        return await send(plain);
      }
    },
    results: async (session, results, options = {}) => {
      const body = toSnake({ session, results: results.map((one) => wireOf(one)) });
      const request = { method: "POST", path: "/v1/results", body, isIdempotent: true } as const;
      const answer = await caller.bodyOf<{ results: readonly WireResult[] }>(await caller.mutate(request, options));
      return answer.results.map((one) => replyOf(one));
    },
  };
}

/** In the middle of an upgrade a leader may be of a release that knows no epochs, and refuses the field before it does anything. */
function isOlderServer(error: unknown): boolean {
  return TenureError.is(error) && error.code === "BAD_REQUEST" && error.message.includes("agent_epoch");
}

function refOf({ jobId, jobEpoch, leaseId }: LeaseRef): LeaseRef {
  return { jobId, jobEpoch, leaseId };
}

function wireOf({ leaderEpoch, outcome, ...ref }: ResultCall): object {
  const { kind, ...fields } = outcome;
  return { ...refOf(ref), leaderEpoch, outcome: kind, ...fields };
}

function replyOf(one: WireResult): ResultAnswer {
  if (one.ok) return one;
  const { error: code, message, leaderEpoch } = one;
  return { ok: false, code, message, leaderEpoch };
}
