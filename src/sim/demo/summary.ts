// What a demonstration ends with: the nodes, the fate of every write, and what each takeover cost.
// A killed and a frozen leader are always shown side by side: they differ by two orders of magnitude, and a
// summary with one of them alone would promise something that is not true.

import { ELECTION_DEFAULTS } from "../../core/raft/index.ts";

export type Cause = "killed" | "frozen" | "transferred";

/** `ms`: from the fault to the first write that the new leader acknowledged, in virtual time. */
export interface Failover {
  readonly cause: Cause;
  readonly ms: number;
}

export interface NodeLine {
  readonly name: string;
  readonly role: string;
  readonly epoch: number;
  readonly index: number;
  readonly hash: string;
}

export interface Summary {
  readonly nodes: readonly NodeLine[];
  readonly leader: string | null;
  readonly epoch: number;
  readonly acknowledged: number;
  /** Acknowledged, and missing in the state of a node. */
  readonly lost: number;
  readonly unknown: number;
  /** Of the unknown ones, those that turned out to be in the log. */
  readonly unknownCommitted: number;
  readonly staleTried: number;
  readonly staleCommitted: number;
  readonly failovers: readonly Failover[];
  readonly equal: boolean;
  readonly problems: readonly string[];
  readonly ok: boolean;
}

export function jsonOf(summary: Summary): string {
  return JSON.stringify({
    failovers: summary.failovers.map(({ cause, ms }) => ({ cause, ms: Number(ms.toFixed(1)) })),
    writes: summary.acknowledged,
    lost: summary.lost,
    unknown: summary.unknown,
    stale: { tried: summary.staleTried, committed: summary.staleCommitted },
    leader: summary.leader,
    epoch: summary.epoch,
  });
}

export function tableOf(summary: Summary): string[] {
  return [...nodeLines(summary), "", ...writeLines(summary), "", ...costLines(summary), ...verdictLines(summary)];
}

function nodeLines({ nodes, equal }: Summary): string[] {
  const rows = nodes.map(({ name, role, epoch, index, hash }) => row(name, role, String(epoch), String(index), hash));
  const last = rows.length - 1;
  return [
    row("node", "role", "epoch", "log index", "state hash"),
    ...rows.map((line, at) => (at === last ? `${line}   ${equal ? "all equal" : "NOT EQUAL"}` : line)),
  ];
}

function row(name: string, role: string, epoch: string, index: string, hash: string): string {
  return `${name.padEnd(5)} ${role.padEnd(13)} ${epoch.padStart(5)}  ${index.padStart(9)}  ${hash}`;
}

function writeLines(summary: Summary): string[] {
  const { acknowledged, lost, unknown, unknownCommitted, staleTried, staleCommitted } = summary;
  const fate = unknown === 0 ? "" : ` (no answer before the epoch ended; ${unknownCommitted} got in)`;
  const stale =
    staleTried === 0 ? [] : [`stale writes   ${staleTried} tried in an epoch that was over, ${staleCommitted} got in`];
  return [`writes         ${acknowledged} acknowledged, ${lost} lost, ${unknown} unknown${fate}`, ...stale];
}

function costLines({ failovers }: Summary): string[] {
  const { electionTimeoutMinMs: min, electionTimeoutMaxMs: max } = ELECTION_DEFAULTS;
  return [
    "From the fault to the first write that the next leader acknowledged:",
    `leader killed  ${cost(failovers, "killed")}   its connections are reset: the others know at once`,
    `leader frozen  ${cost(failovers, "frozen")}   it is only silent: costs the election timeout (${min}–${max} ms)`,
    `transferred    ${cost(failovers, "transferred")}   planned: writes stop only for the hand-over`,
    "This is virtual time on the simulator; real processes come with a later version.",
  ];
}

/** One time as it is; of several, the middle one and the worst. */
function cost(failovers: readonly Failover[], cause: Cause): string {
  const times = failovers.flatMap((one) => (one.cause === cause ? [one.ms] : [])).toSorted((a, b) => a - b);
  const text = (at: number): string => `${(times.at(at) ?? 0).toFixed(1).padStart(6)} ms`;
  if (times.length === 0) return "        –";
  if (times.length === 1) return text(0);
  return `${text(Math.floor(times.length / 2))} median of ${times.length}, worst ${text(-1).trim()}`;
}

function verdictLines({ problems }: Summary): string[] {
  return problems.length === 0 ? [] : ["", ...problems.map((problem) => `PROBLEM: ${problem}`)];
}
