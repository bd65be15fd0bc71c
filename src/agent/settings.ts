// What an agent is told, checked once, with every default in one place.

import { TenureError } from "../core/kit/errors.ts";
import {
  AGENT_CAPACITY_MAX,
  AGENT_KINDS_MAX,
  JOB_NAME_BYTES_MAX,
  LEASE_TTL_MS_MAX,
  LEASE_TTL_MS_MIN,
  LEASE_WAIT_MS_MAX,
} from "../core/kit/limits.ts";
import type { Json } from "../core/kit/json.ts";
import { harmlessly } from "../core/kit/user-code.ts";
import { AGENT_LEASE_MS } from "./limits.ts";

/** Payload and result of each kind, for `createAgent<Kinds>`. */
export type JobKinds = Readonly<Record<string, { readonly payload: unknown; readonly result: unknown }>>;

export interface AgentJob<Payload = Json> {
  readonly id: string;
  readonly kind: string;
  readonly payload: Payload;
  readonly queue: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly priority: number;
}

export interface JobContext {
  /** Aborts when the job is cancelled, takes too long, may be another agent's, or the agent stops. `reason` is a JobAborted. */
  readonly signal: AbortSignal;
  /** Aborts when the job may be another agent's, also while a handler still ends what `signal` has aborted for another reason. */
  readonly lost: AbortSignal;
  /** 1 for the first. */
  readonly attempt: number;
  /** From 0 to 1, or null where nobody knows; the last one counts. */
  readonly progress: (share: number | null, message?: string | null) => void;
  /** In order; what is more than the cluster takes is left out, with a line that says how much. */
  readonly log: (text: string) => void;
  /** Resolves when there is room for more of the log; for whoever prints much and can wait, so that nothing is left out. */
  readonly logRoom: () => Promise<void>;
}

/** Returning completes the job, also where it was cancelled meanwhile; throwing, whatever it is, fails the attempt. */
export type JobHandler<Payload = Json, Result = unknown> = (
  job: AgentJob<Payload>,
  context: JobContext,
) => Result | Promise<Result>;

export type JobHandlers<Kinds extends JobKinds> = {
  readonly [Kind in keyof Kinds]: JobHandler<Kinds[Kind]["payload"], Kinds[Kind]["result"]>;
};

export interface AgentSettings {
  /** One process at a time runs under a name: another one takes its jobs away. */
  readonly name: string;
  readonly handlers: Readonly<Record<string, JobHandler<never>>>;
  /** Jobs at one time; 1. */
  readonly capacity?: number | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Such as `linux`; "any". */
  readonly platform?: string | undefined;
  /** After so long without a word a job goes to another agent; 15 seconds. */
  readonly leaseMs?: number | undefined;
  /** What went wrong and is tried again, for a log. Whatever it throws, or rejects with, changes nothing. */
  readonly onError?: ((error: Error) => void) | undefined;
}

/** All there are, for those whom no compiler tells of a misspelt one. */
export const AGENT_SETTINGS = {
  name: true,
  handlers: true,
  capacity: true,
  labels: true,
  platform: true,
  leaseMs: true,
  onError: true,
} as const satisfies Readonly<Record<keyof AgentSettings, true>>;

export interface CheckedSettings {
  readonly name: string;
  readonly kinds: readonly string[];
  readonly handlers: ReadonlyMap<string, JobHandler>;
  readonly capacity: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly platform: string;
  readonly leaseMs: number;
  /** How often leases are renewed, and how long a poll waits: three times in a lease. */
  readonly beatMs: number;
  /** Never throws. */
  readonly onError: (error: Error) => void;
}

const BEATS_PER_LEASE = 3;
const NAME = new RegExp(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,${JOB_NAME_BYTES_MAX - 1}}$`);

export function checkSettings(settings: AgentSettings): CheckedSettings {
  const { name, handlers, capacity = 1, labels = {}, platform = "any", leaseMs = AGENT_LEASE_MS } = settings;
  const kinds = Object.keys(handlers);
  if (!NAME.test(name)) throw invalid(`name is ${JSON.stringify(name)}; give letters, digits, '.', '_', ':' and -`);
  if (!NAME.test(platform)) throw invalid(`platform is ${JSON.stringify(platform)}; give a name such as linux`);
  if (kinds.length === 0 || kinds.length > AGENT_KINDS_MAX) {
    throw invalid(`handlers has ${kinds.length} kinds; give 1 to ${AGENT_KINDS_MAX}`);
  }
  for (const kind of kinds) {
    if (!NAME.test(kind)) throw invalid(`handlers has the kind ${JSON.stringify(kind)}, which is no name`);
    if (typeof handlers[kind] !== "function") throw invalid(`the handler of ${kind} is no function`);
  }
  checkNumber("capacity", capacity, 1, AGENT_CAPACITY_MAX);
  checkNumber("leaseMs", leaseMs, LEASE_TTL_MS_MIN, LEASE_TTL_MS_MAX);
  return {
    name,
    kinds,
    handlers: new Map(Object.entries(handlers) as [string, JobHandler][]),
    capacity,
    labels,
    platform,
    leaseMs,
    beatMs: Math.min(LEASE_WAIT_MS_MAX, Math.floor(leaseMs / BEATS_PER_LEASE)),
    onError: (error) => harmlessly(() => settings.onError?.(error)),
  };
}

function checkNumber(name: string, value: number, min: number, max: number): void {
  if (!Number.isSafeInteger(value) || value < min || value > max) {
    throw invalid(`${name} is ${String(value)}; give a whole number from ${min} to ${max}`);
  }
}

function invalid(what: string): TenureError {
  return new TenureError("CONFIG_INVALID", `This agent can't run: ${what}.`);
}
