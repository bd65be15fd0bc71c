// A cluster as it is printed: the answers of all nodes put together, as lines for people and as an object for programs.
// Pure. The leader's own view is the best one; without a leader, that of the node that is furthest.

import type { AlertView, ClusterView, ElectionView, MemberView, NodeAnswer } from "../../client/index.ts";
import type { ErrorCode } from "../../core/kit/errors.ts";
import { type Paint, paintState, PLAIN } from "../kit/colour.ts";
import { columns, duration, isoTime, printable, table } from "../kit/output.ts";

/**
 * `ok`: the leader hears from it, or nobody leads and it answers. `unresponsive`: the leader does not. `starting`: it is
 * not ready yet. `unauthenticated`: it lives, and another node or we ourselves are not accepted by it, or do not accept it: a
 * matter of certificates and keys. `down`: nobody leads, and it does not answer. `unknown`: nobody can say.
 */
export const HEALTHS = ["ok", "unresponsive", "starting", "unauthenticated", "down", "unknown"] as const;
export type Health = (typeof HEALTHS)[number];

/** It was reached, and did not accept us, or we did not accept it. */
const OF_IDENTITY: ReadonlySet<string> = new Set<ErrorCode>([
  "UNAUTHENTICATED",
  "PERMISSION_DENIED",
  "CERTIFICATE_INVALID",
]);

export interface MemberRow {
  readonly member: MemberView;
  readonly role: "leader" | "follower" | "draining";
  readonly health: Health;
  /** What the node itself answered. */
  readonly own: ClusterView | null;
  /** Why it gave no answer; null where it did, or could not be asked. */
  readonly why: string | null;
  /** Of its refusal, where it gave one. */
  readonly code: ErrorCode | null;
  /** Why another node and it do not accept each other; null: they do, or nobody knows. */
  readonly refusal: string | null;
}

/** `raisedBy`: the nodes that say so; the message is that of the first of them to do so. */
export type StatusAlert = AlertView & { readonly raisedBy: readonly string[] };

export interface ClusterStatus {
  /** Null: no node answers. */
  readonly view: ClusterView | null;
  readonly leader: string | null;
  readonly rows: readonly MemberRow[];
  readonly alerts: readonly StatusAlert[];
  /** Nodes that answered and are no members: they were removed, or not added yet. */
  readonly strangers: readonly ClusterView[];
  /** Addresses that gave no answer and belong to no member that is known. */
  readonly silent: readonly { readonly url: string; readonly why: string; readonly code: ErrorCode | null }[];
}

export function statusOf(answers: readonly NodeAnswer[]): ClusterStatus {
  const views = answers.flatMap(({ view }) => (view === null ? [] : [view]));
  const silent = answers.flatMap(({ url, view, why, code }) => (view === null ? [{ url, why, code }] : []));
  const [view = null] = views.toSorted(byWorth);
  if (view === null) return { view, leader: null, rows: [], alerts: [], strangers: [], silent };
  const leader = leaderOf(view, views);
  const rows = view.members.map((member) => rowOf(member, leader, views, silent));
  const urls = new Set(view.members.map(({ url }) => url));
  const answered = new Set(rows.map(({ own }) => own));
  return {
    view,
    leader,
    rows,
    alerts: alertsOf(views),
    strangers: views.filter((one) => !answered.has(one)),
    silent: silent.filter(({ url }) => !urls.has(url)),
  };
}

function byWorth(a: ClusterView, b: ClusterView): number {
  return Number(b.role === "LEADER") - Number(a.role === "LEADER") || b.term - a.term || b.commit - a.commit;
}

/** A leader that is named, but says itself that it does not lead (it was cut off, or is starting again), is none. */
function leaderOf(view: ClusterView, views: readonly ClusterView[]): string | null {
  const named = view.leader?.nodeId ?? null;
  const own = views.find(({ nodeId }) => nodeId === named);
  return own === undefined || own.role !== "STANDBY" ? named : null;
}

function rowOf(
  member: MemberView,
  leader: string | null,
  views: readonly ClusterView[],
  silent: ClusterStatus["silent"],
): MemberRow {
  // A wiped disk that came back answers under the same id, and is not this member.
  const own =
    views.find(({ nodeId, incarnation }) => nodeId === member.nodeId && incarnation === member.incarnation) ?? null;
  const unheard = own === null ? (silent.find(({ url }) => url === member.url) ?? null) : null;
  const refusal = refusalOf(member, views);
  const isLeader = leader === member.nodeId && member.isLeader;
  const isDraining = own?.role === "DRAINING" || own?.isDraining === true;
  const role = isDraining ? "draining" : isLeader ? "leader" : "follower";
  const health = healthOf(member, isLeader, own, { unheard, refusal });
  return { member, role, health, own, why: unheard?.why ?? null, code: unheard?.code ?? null, refusal };
}

interface Absence {
  readonly unheard: ClusterStatus["silent"][number] | null;
  readonly refusal: string | null;
}

function healthOf(
  { progress }: MemberView,
  isLeader: boolean,
  own: ClusterView | null,
  { unheard, refusal }: Absence,
): Health {
  if (progress !== null && !isLeader && progress.healthy) return own?.isReady === false ? "starting" : "ok";
  if (refusal !== null && !isLeader) return "unauthenticated";
  if (own !== null && !own.isReady) return "starting";
  if (progress !== null && !isLeader) return "unresponsive";
  if (own !== null) return "ok";
  if (unheard === null) return "unknown";
  return OF_IDENTITY.has(unheard.code ?? "") ? "unauthenticated" : "down";
}

/** What any node that answers says of its own connection to this member. */
function refusalOf({ nodeId, incarnation }: MemberView, views: readonly ClusterView[]): string | null {
  for (const { members, nodeId: from } of views) {
    const refusal = members.find((one) => one.nodeId === nodeId && one.incarnation === incarnation)?.refusal ?? null;
    if (refusal !== null) return `${from} says: ${refusal}`;
  }
  return null;
}

function alertsOf(views: readonly ClusterView[]): StatusAlert[] {
  const found = new Map<string, StatusAlert>();
  const all = views.flatMap(({ nodeId, alerts }) => alerts.map((alert) => ({ ...alert, raisedBy: [nodeId] })));
  for (const alert of all.toSorted((a, b) => a.sinceWallMs - b.sinceWallMs)) {
    const key = `${alert.name} ${alert.nodeId ?? ""}`;
    const first = found.get(key);
    if (first === undefined) found.set(key, alert);
    else found.set(key, { ...first, raisedBy: [...new Set([...first.raisedBy, ...alert.raisedBy])] });
  }
  return [...found.values()].toSorted((a, b) => a.severity.localeCompare(b.severity) || a.sinceWallMs - b.sinceWallMs);
}

/** How many voters there are, and how many of them, or of a site's nodes, are known to work. */
function votersOf(rows: readonly MemberRow[]): { readonly voters: number; readonly working: number } {
  const voters = rows.filter(({ member }) => member.kind === "voter");
  const able = rows.filter(({ member }) => member.kind === "voter" || member.kind === "node");
  return { voters: voters.length, working: able.filter(({ health }) => health === "ok").length };
}

function majorityOf(voters: number): number {
  return Math.floor(voters / 2) + 1;
}

/** Those that have failed already can't fail again: what may still happen depends on those that work. */
function spareText(voters: number, working: number, isLed: boolean): string {
  const spare = working - majorityOf(voters);
  // Who is led has a majority, though nobody whom we reached can say who they are.
  if (spare < 0 && isLed) return `${voters}, ${working} known to work`;
  const count = working === voters ? `${voters}` : `${voters}, ${working} work${working === 1 ? "s" : ""}`;
  if (spare < 0) return `${count}: nothing can be written until ${majorityOf(voters)} do`;
  return `${count}: ${spare === 0 ? "none" : spare} may fail`;
}

export function statusText(status: ClusterStatus, paint: Paint = PLAIN): string {
  const { view, leader, rows, alerts, silent } = status;
  if (view === null)
    return `no server answers:\n${silent.map(({ url, why }) => `  ${url}: ${printable(why)}\n`).join("")}`;
  const isSite = view.backend === "postgres";
  const titles = isSite ? ["PROCESS", "URL"] : ["DISK ID", "ADDRESS"];
  return [
    columns(isSite ? siteHead(view, leader, rows) : clusterHead(view, leader, rows)),
    "\n",
    table(
      ["NODE", titles[0]!, "KIND", "ROLE", "HEALTH", "LAG", "CONTACT", "FREE", titles[1]!],
      rows.map((row) => rowText(row, isSite, paint)),
      paint,
    ),
    ...[
      notes(status)
        .map((note) => `${note}\n`)
        .join(""),
      columns(alerts.map((alert) => alertRow(alert, paint))),
    ].map((part) => (part === "" ? "" : `\n${part}`)),
  ].join("");
}

function clusterHead(view: ClusterView, leader: string | null, rows: readonly MemberRow[]): string[][] {
  const { voters, working } = votersOf(rows);
  const { ancestors = [] } = view;
  return [
    ["cluster", `${view.clusterId}${view.isPaused === true ? ", paused (tenure cluster resume)" : ""}`],
    ...(ancestors.length === 0 ? [] : [["made from", ancestors.join(", ")]]),
    [
      "leader",
      leader === null
        ? `nobody (${working} of ${voters} voters work, ${majorityOf(voters)} are needed)`
        : `${leader}, term ${view.term}`,
    ],
    ["commit", commitText(view)],
    ["voters", `${spareText(voters, working, leader !== null)}${view.isJoint ? "; the membership is changing" : ""}`],
    [
      "snapshot",
      view.snapshot === null
        ? "none yet"
        : `at ${view.snapshot.index}, ${bytesText(view.snapshot.bytes)} (on ${view.nodeId})`,
    ],
  ];
}

/** Of a site on a database nobody votes: whichever node has the database's lock leads, and one is enough. */
function siteHead(view: ClusterView, leader: string | null, rows: readonly MemberRow[]): string[][] {
  const { working } = votersOf(rows);
  const count = working === rows.length ? `${working}` : `${rows.length}, ${working} work${working === 1 ? "s" : ""}`;
  return [
    ["site", `${view.clusterId}, on Postgres`],
    [
      "leader",
      leader === null
        ? "nobody: look at the database and at the way to it (tenure doctor --backend postgres://…)"
        : `${leader}, epoch ${view.term}`,
    ],
    ["commit", view.role === "LEADER" ? `${view.commit}` : commitText(view)],
    ["nodes", `${count}: one is enough, as long as the database answers it`],
  ];
}

function commitText({ commit, stalenessMs, nodeId }: ClusterView): string {
  return `${commit}${stalenessMs === 0 ? "" : ` as ${nodeId} sees it`}`;
}

/** Messages say "this node": whoever reads those of all has to be told which. */
function alertRow({ severity, sinceWallMs, name, message, raisedBy }: StatusAlert, paint: Paint): string[] {
  return [paintState(severity, paint), isoTime(sinceWallMs), name, printable(`${raisedBy.join(", ")}: ${message}`)];
}

function rowText({ member, role, health, own }: MemberRow, isSite: boolean, paint: Paint): string[] {
  const { nodeId, incarnation, kind, progress, address, url } = member;
  const free =
    own === null
      ? "-"
      : `${own.disk.freeBytes === null ? "?" : bytesText(own.disk.freeBytes)}${own.disk.state === "ok" ? "" : ` ${own.disk.state}`}`;
  return [
    nodeId,
    incarnation.slice(0, 8),
    kind,
    paintState(role, paint),
    paintState(health, paint),
    progress === null || member.isLeader
      ? "-"
      : `${progress.lag}${progress.state === "replicate" ? "" : ` ${progress.state}`}`,
    progress === null || member.isLeader ? "-" : `${duration(progress.lastContactMs)} ago`,
    free,
    printable((isSite ? url : address) ?? "-"),
  ];
}

function notes({ rows, strangers, silent }: ClusterStatus): string[] {
  const versions = new Set(rows.flatMap(({ own }) => (own === null ? [] : [own.version])));
  const unanswered = rows.flatMap(({ member, why, code }) => {
    return why === null
      ? []
      : [`${member.nodeId} ${unansweredText(code)} at ${printable(member.url ?? "-")}: ${printable(why)}`];
  });
  return [
    // A node that comes back with a new disk is a member twice for a while.
    ...new Set(unanswered),
    ...rows.flatMap(({ member, refusal, health }) =>
      refusal === null || health !== "unauthenticated"
        ? []
        : [`${member.nodeId} is not accepted by other nodes, or does not accept them: ${printable(refusal)}`],
    ),
    ...silent.map(({ url, why, code }) => `${url} ${unansweredText(code)}: ${printable(why)}`),
    ...strangers.map(
      ({ nodeId, notReadyReason }) =>
        `${nodeId} answers and is no member: it ${printable(notReadyReason ?? "has not heard of that yet")}`,
    ),
    ...rows.flatMap(({ member, own }) =>
      own?.isDraining === true
        ? [
            `${member.nodeId} is drained: it leads only where nobody else can (tenure cluster drain ${member.nodeId} --undo)`,
          ]
        : [],
    ),
    ...rows.flatMap(({ member, own }) =>
      own === null || own.isReady ? [] : [`${member.nodeId} is not ready: ${printable(own.notReadyReason ?? "?")}`],
    ),
    ...rows.flatMap(({ member }) =>
      member.url === null ? [`${member.nodeId} tells no URL, and was not asked: set api.advertise there`] : [],
    ),
    ...(versions.size > 1
      ? [`versions differ: ${rows.map(({ member, own }) => `${member.nodeId} ${own?.version ?? "?"}`).join(", ")}`]
      : []),
  ];
}

function unansweredText(code: ErrorCode | null): string {
  return OF_IDENTITY.has(code ?? "") ? "is reached and not authenticated" : "does not answer";
}

export function statusObject({ view, leader, rows, alerts, strangers, silent }: ClusterStatus) {
  return {
    cluster_id: view?.clusterId ?? null,
    ancestors: view?.ancestors ?? [],
    paused: view?.isPaused ?? false,
    backend: view?.backend ?? null,
    leader,
    term: view?.term ?? null,
    commit: view?.commit ?? null,
    seen_by: view?.nodeId ?? null,
    is_joint: view?.isJoint ?? null,
    ...votersOf(rows),
    members: rows.map(({ member, role, health, own, why, refusal }) => ({
      node_id: member.nodeId,
      incarnation: member.incarnation,
      kind: member.kind,
      role,
      health,
      lag: member.progress?.lag ?? null,
      last_contact_ms: member.progress === null ? null : Math.round(member.progress.lastContactMs),
      address: member.address,
      url: member.url,
      answers: own !== null,
      error: why,
      refusal,
      version: own?.version ?? null,
      applied: own?.applied ?? null,
      last_index: own?.lastIndex ?? null,
      disk: own === null ? null : { state: own.disk.state, free_bytes: own.disk.freeBytes },
    })),
    alerts: alerts.map(({ name, severity, message, sinceWallMs, nodeId, raisedBy }) => ({
      name,
      severity,
      message,
      since: isoTime(sinceWallMs),
      node_id: nodeId,
      raised_by: raisedBy,
    })),
    strangers: strangers.map(({ nodeId, incarnation, isReady, notReadyReason }) => ({
      node_id: nodeId,
      incarnation,
      is_ready: isReady,
      reason: notReadyReason,
    })),
    silent: silent.map(({ url, why }) => ({ url, error: why })),
  };
}

/** What is to be said where there is nothing to show; null: there may be something. */
export function electionsNote(answers: readonly NodeAnswer[]): string | null {
  if (!answers.some(({ view }) => view?.backend === "postgres")) return null;
  return "a site on Postgres holds no elections: the database's lock goes to the node that has waited longest. Who led, and when: tenure scope history SCOPE --backend postgres://…, where tenure scope list names the scope (tenure/site/…)";
}

/** Every node remembers what it saw: the same election, seen by several, is one. */
export function electionsOf(answers: readonly NodeAnswer[]): ElectionView[] {
  const found = new Map<string, ElectionView>();
  for (const election of answers.flatMap(({ view }) => view?.elections ?? [])) {
    const key = `${election.term} ${election.stage} ${election.candidate} ${election.startedAtMs}`;
    const other = found.get(key);
    if (other === undefined || election.votes.length > other.votes.length) found.set(key, election);
  }
  return [...found.values()].toSorted((a, b) => b.term - a.term || b.startedAtMs - a.startedAtMs);
}

export function electionsTable(elections: readonly ElectionView[], paint: Paint = PLAIN): string {
  const rows = elections.map(
    ({ term, stage, reason, candidate, votes, startedAtMs, durationMs, result, repeated = 1 }) => [
      isoTime(startedAtMs),
      String(term),
      `${stage}${repeated > 1 ? ` ×${repeated}` : ""}`,
      candidate,
      reason,
      result,
      duration(durationMs),
      votesText(votes),
    ],
  );
  return table(["AT", "TERM", "STAGE", "CANDIDATE", "WHY", "RESULT", "TOOK", "VOTES"], rows, paint);
}

export function votesText(votes: ElectionView["votes"]): string {
  return votes.length === 0
    ? "-"
    : votes.map(({ voter, granted }) => `${voter.split("@", 1)[0]} ${granted ? "yes" : "no"}`).join(", ");
}

export function electionObject(election: ElectionView) {
  const { term, stage, reason, candidate, candidates, votes, startedAtMs, durationMs, result, repeated = 1 } = election;
  const at = isoTime(startedAtMs);
  return { at, term, stage, reason, candidate, candidates, votes, duration_ms: durationMs, repeated, result };
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

export function bytesText(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** power;
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[power]}`;
}
