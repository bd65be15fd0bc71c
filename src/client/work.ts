// An agent's two calls, as requests: leases and results. What becomes of an attempt is the agent's affair (tenure/agent);
// this only carries. Neither takes a key: results are idempotent by their lease, and what was given in an answer that got
// lost is taken back by the next call that says so (`poll`, `answered`); without those numbers it ends by its time.

import { TenureError } from "../contract/errors.ts";
import { toSnake } from "../contract/snake-case.ts";
import { RENEWAL_ATTEMPT_MS } from "../contract/timeouts.ts";
import type { Caller, CallOptions } from "./caller.ts";
import type { JobSpecView, JobState, Json } from "./job-views.ts";

export interface LeaseRef {
  readonly jobId: string;
  readonly jobEpoch: number;
  readonly leaseId: string;
}

export interface LeaseRequest {
  readonly agent: {
    readonly name: string;
    readonly session: string;
    readonly kinds: readonly string[];
    readonly labels: Readonly<Record<string, string>>;
    readonly platform: string;
    readonly capacity: number;
  };
  readonly renew: readonly LeaseRef[];
  readonly progress: readonly (LeaseRef & {
    readonly progress: { readonly share: number | null; readonly message: string | null };
  })[];
  readonly logs: readonly (LeaseRef & { readonly chunk: { readonly offset: number; readonly text: string } })[];
  readonly max: number;
  readonly waitMs: number;
  readonly ttlMs: number;
  /** As the first answer has it; of every call of this process from then on. */
  readonly agentEpoch?: number | undefined;
  /** Of a call with `max` above 0, one at a time: its number within the session, from 1 up. */
  readonly poll?: number | undefined;
  /** The last of them that was answered: what those between were given has reached nobody, and is taken back. */
  readonly answered?: number | undefined;
}

export interface LeaseReply {
  readonly leaderEpoch: number;
  /** Absent from an older server. */
  readonly agentEpoch?: number | undefined;
  readonly renewed: readonly (LeaseRef & {
    readonly outcome: "renewed" | "cancelled" | "committed" | "lost";
    readonly state: JobState | null;
  })[];
  readonly leases: readonly (LeaseRef & {
    readonly leaderEpoch: number;
    readonly attempt: number;
    readonly ttlMs: number;
    readonly spec: JobSpecView;
  })[];
  readonly logEnds: readonly (number | null)[];
  readonly isDraining: boolean;
}

export interface ResultRequest extends LeaseRef {
  readonly leaderEpoch: number;
  readonly outcome:
    | { readonly kind: "completed"; readonly result: Json }
    | {
        readonly kind: "failed";
        readonly error: { readonly message: string; readonly detail: Json };
        readonly retry: boolean;
      }
    | { readonly kind: "cancelled" }
    | { readonly kind: "handed-back" };
}

export type ResultReply =
  | { readonly ok: true; readonly state: JobState; readonly isRepeated: boolean }
  | {
      readonly ok: false;
      readonly code: "STALE_EPOCH" | "NOT_FOUND";
      readonly message: string;
      readonly leaderEpoch: number;
    };

export interface ClientWork {
  /** With `max` 0 it only renews and reports, and is repeated where that is safe; with more, it is sent once. */
  lease(request: LeaseRequest, options?: CallOptions): Promise<LeaseReply>;
  /** An answer for each, in order. */
  results(session: string, results: readonly ResultRequest[], options?: CallOptions): Promise<readonly ResultReply[]>;
}

type WireResult =
  | Extract<ResultReply, { ok: true }>
  | (Omit<Extract<ResultReply, { ok: false }>, "code"> & {
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

function wireOf({ leaderEpoch, outcome, ...ref }: ResultRequest): object {
  const { kind, ...fields } = outcome;
  return { ...refOf(ref), leaderEpoch, outcome: kind, ...fields };
}

function replyOf(one: WireResult): ResultReply {
  if (one.ok) return one;
  const { error: code, message, leaderEpoch } = one;
  return { ok: false, code, message, leaderEpoch };
}
