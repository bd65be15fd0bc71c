// What `npm start` shows: a screen for terminals, lines for everything else, and what happened between two looks. Pure.

import type { ElectionView } from "../../client/index.ts";
import { type ClusterStatus, statusOf, votesText } from "../cluster/view.ts";
import { columns, duration } from "../kit/output.ts";
import { HAPPENED_SHOWN_MAX } from "./limits.ts";

export type NodeState = "starting" | "running" | "frozen" | "dead";

export interface DevNode {
  readonly id: string;
  readonly pid: number | null;
  readonly state: NodeState;
  /** Until it is started again; null where it runs. */
  readonly restartInMs: number | null;
}

export interface DevModel {
  readonly uptimeMs: number;
  readonly nodes: readonly DevNode[];
  readonly status: ClusterStatus;
  /** The last one that was won. */
  readonly election: ElectionView | null;
  /** That were finished; null until it was measured. */
  readonly jobsPerSecond: number | null;
  readonly accepted: number;
  /** How long no job was accepted the last time that something happened to the leader. */
  readonly failoverMs: number | null;
  readonly page: string | null;
  /** What another terminal needs to be told; null: not known yet. */
  readonly access: string | null;
  /** The newest last. */
  readonly happened: readonly string[];
  readonly directory: string;
}

export const EMPTY_STATUS: ClusterStatus = statusOf([]);
export interface ScreenSize {
  readonly rows: number;
  readonly columns: number;
}

const KEYS_TEXT = "k kill the leader · p pause it or let it go on · d drain it · t transfer · q quit";

/** What is above fits into any terminal of 80 × 24; what has happened gets the rows that are left, a line each. */
export function screenText(model: DevModel, { rows, columns: width }: ScreenSize): string {
  const { uptimeMs, nodes, status, election, happened, directory, page, access } = model;
  const leader = nodes.find(({ id }) => id === status.leader);
  const head = [
    ["leader", status.leader === null ? "nobody" : `${status.leader} leads, epoch ${status.view?.term ?? "?"}`],
    ["elected", election === null ? "-" : electionText(election)],
    ["jobs", jobsText(model)],
    [
      "failover",
      model.failoverMs === null ? "none yet" : `no job was accepted for ${duration(model.failoverMs)}, the last time`,
    ],
    ["page", page ?? "-"],
    ["uptime", duration(uptimeMs)],
  ];
  const above = [
    `Tenure: three nodes on this machine, in ${directory}\n\n`,
    columns(head),
    ...(access === null ? [] : [`in another terminal:\n${access}\n`]),
    "\n",
    columns([["NODE", "PID", "STATE", "ROLE", "COMMIT", "LAG"], ...nodes.map((node) => nodeRow(node, status))]),
    "\n",
    `${adviceText(leader)}\n`,
    `${KEYS_TEXT}\n`,
    "\n",
  ].join("");
  const used = above.split("\n").reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / width)), 0);
  const left = Math.min(HAPPENED_SHOWN_MAX, Math.max(1, rows - used));
  return (
    above +
    happened
      .slice(-left)
      .map((line) => `${line.slice(0, width)}\n`)
      .join("")
  );
}

function jobsText({ jobsPerSecond, accepted }: DevModel): string {
  const rate = jobsPerSecond === null ? "" : `${jobsPerSecond.toFixed(0)} jobs/s, `;
  return `${rate}${accepted} accepted`;
}

export function adviceText(leader: DevNode | undefined): string {
  const pid = leader?.pid ?? null;
  if (pid === null) return "nobody leads at this moment: the others elect a leader as soon as two of three run";
  return `kill -9 ${pid} kills the leader: jobs go on within 0.2 s or so, it is back after 3 s`;
}

function nodeRow({ id, pid, state, restartInMs }: DevNode, { rows, leader }: ClusterStatus): string[] {
  const row = rows.find(({ member }) => member.nodeId === id);
  const isUp = state === "running";
  return [
    id,
    pid === null ? "-" : String(pid),
    restartInMs === null ? state : `${state}, back in ${duration(restartInMs)}`,
    !isUp || row === undefined
      ? "-"
      : id === leader
        ? "LEADER"
        : row.member.kind === "voter"
          ? "follower"
          : row.member.kind,
    isUp ? String(row?.own?.commit ?? "-") : "-",
    id === leader ? "-" : String(row?.member.progress?.lag ?? "-"),
  ];
}

function electionText({ term, reason, durationMs, votes }: ElectionView): string {
  return `term ${term} in ${duration(durationMs)} (${reason}): ${votesText(votes)}`;
}

/** Every second or so where there is no screen. */
export function plainText(model: DevModel): string {
  const { status, nodes } = model;
  const leads = status.leader === null ? "nobody leads" : `${status.leader} leads, epoch ${status.view?.term ?? "?"}`;
  const leader = nodes.find(({ id }) => id === status.leader);
  const pid = leader === undefined || leader.pid === null ? "" : ` (pid ${leader.pid})`;
  return `${leads}${pid}, ${jobsText(model)}`;
}

/** A Node error as it is printed where nobody caught it, or what the command itself says on its way out. */
const ERROR_LINE = /^(?:Uncaught )?(?:[A-Za-z.]*(?:Error|Exception)\b.*:|tenure(?: \w+)?:) \S/;
/** A crash ends with Node's version; above it are the frames of the stack and the fields of the error. */
const NOISE_LINE = /^(?:\s.*|[{}^~]*|Node\.js v.*)$/;

/** The line of a log that says why its process ended; null where it says nothing. */
export function lastWords(log: string): string | null {
  const lines = log.split("\n");
  return lines.findLast((line) => ERROR_LINE.test(line)) ?? lines.findLast((line) => !NOISE_LINE.test(line)) ?? null;
}

/** What changed between two looks at the cluster, as sentences. */
export function changesBetween(before: ClusterStatus, after: ClusterStatus, election: ElectionView | null): string[] {
  const lines: string[] = [];
  const term = after.view?.term ?? 0;
  const isNew = after.leader !== null && (after.leader !== before.leader || term !== before.view?.term);
  if (isNew) {
    const votes =
      election !== null && election.term === term
        ? `, elected in ${duration(election.durationMs)}: ${votesText(election.votes)}`
        : "";
    lines.push(`${after.leader} leads, epoch ${term}${votes}`);
  }
  for (const { member } of after.rows) {
    const old = before.rows.find((row) => row.member.nodeId === member.nodeId);
    if (before.view === null || old?.member.kind === member.kind) continue;
    lines.push(
      `${member.nodeId} is ${member.kind === "voter" ? "a voter" : member.kind === "learner" ? "a learner, and catches up" : member.kind}`,
    );
  }
  return lines;
}
