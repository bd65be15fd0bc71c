// What agents of `chaos jobs` are told at their start, and what they write down: one JSON line for each step, with a
// synchronous write, so that kill -9 takes nothing of it away. The harness reads it; the cluster never does.

import { readFileSync } from "node:fs";

export const AGENT_VARIABLE = "TENURE_CHAOS_AGENT";
export const JOB_KIND = "chaos";

export interface AgentConfig {
  readonly names: readonly string[];
  readonly urls: readonly string[];
  readonly key: string;
  readonly journal: string;
  readonly capacity: number;
  readonly leaseMs: number;
}

/** What a job of `chaos jobs` says. */
export type ChaosPayload = {
  /** Names the job in the harness's ledger. */
  readonly tag: string;
  readonly workMs: number;
  readonly isDeaf: boolean;
  readonly isTalkative: boolean;
};

/** One lease, as the agent was given it. */
export interface LeaseLine {
  readonly is: "leased";
  readonly agent: string;
  readonly session: string;
  readonly job: string;
  readonly lease: string;
  readonly jobEpoch: number;
  readonly leaderEpoch: number;
  readonly attempt: number;
}

/** A handler begins. */
export interface StartLine {
  readonly is: "started";
  readonly agent: string;
  readonly job: string;
  readonly lease: string;
}

/** A result is about to leave. */
export interface SentLine {
  readonly is: "sent";
  readonly agent: string;
  readonly job: string;
  readonly lease: string;
  readonly outcome: string;
  /** Of this run of the handler; null where it did not complete. */
  readonly mark: string | null;
}

/**
 * What the cluster said about it. `taken`: with the result or with a renewal, it is all the same to whoever believes it.
 * `other-leader`: not taken yet, as another leads now; the SDK renews and sends it again.
 */
export interface ToldLine extends Omit<SentLine, "is"> {
  readonly is: "told";
  readonly verdict: "taken" | "stale" | "other-leader" | "not-found";
}

/** The cluster ended the agent, which nobody asked it for. */
export interface EndLine {
  readonly is: "ended";
  readonly agent: string;
  readonly why: string;
}

/** A call of the agent was refused for its key, which is valid. */
export interface DenyLine {
  readonly is: "denied";
  readonly agent: string;
  readonly why: string;
}

export type AgentLine = LeaseLine | StartLine | SentLine | ToldLine | EndLine | DenyLine;

/** All lines that are whole; the last may be half there while the agent runs. */
export function readJournal(path: string): AgentLine[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as AgentLine);
}
