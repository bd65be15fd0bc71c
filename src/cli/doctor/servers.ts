// The doctor's judgement over what was seen of Tenure's own servers: the facts as plain data, and one function for each row.
// Pure; servers-look.ts gathers.

import { HEARTBEAT_JITTER } from "../../core/kit/limits.ts";
import type { ServersSettings } from "../../electors/servers/index.ts";
import type { Latency } from "./postgres.ts";
import { type Check, type Fact, judged, ok, problem, warning } from "./report.ts";

export interface ServersFacts {
  readonly where: string;
  readonly settings: Pick<ServersSettings, "timing" | "requestTimeoutMs">;
  /** One for each URL that was given. */
  readonly nodes: readonly NodeFacts[];
  /** Of linearizable reads, wherever they were answered. */
  readonly latency: Fact<Latency>;
}

export interface NodeFacts {
  readonly url: string;
  readonly view: Fact<NodeView>;
  /** What callers without a key may do there. */
  readonly anonymousRoles: Fact<readonly string[]>;
}

export interface NodeView {
  readonly clusterId: string;
  readonly nodeId: string;
  readonly version: string;
  readonly leaderId: string | null;
  readonly backend: "raft" | "postgres";
  /** Who can lead: the voters, or the nodes of a site on a database. */
  readonly voters: readonly string[];
  readonly alerts: readonly { readonly name: string; readonly severity: string; readonly message: string }[];
}

interface Seen extends NodeView {
  readonly url: string;
}

export function judgeServers(facts: ServersFacts): Check[] {
  const seen = facts.nodes.flatMap(({ url, view }): Seen[] => ("value" in view ? [{ url, ...view.value }] : []));
  const reached = connection(facts.nodes);
  if (seen.length === 0) return [reached];
  const rows = [reached, cluster(seen), version(seen), access(facts.nodes), leader(seen)];
  if (seen.every(({ leaderId }) => leaderId === null)) return rows;
  const { timing, requestTimeoutMs } = facts.settings;
  return [
    ...rows,
    voters(seen),
    alerts(seen),
    ...judged("latency", facts.latency, (latency) => [judgeLatency(latency, timing, requestTimeoutMs)]),
  ];
}

function connection(nodes: readonly NodeFacts[]): Check {
  const lines = nodes.flatMap(({ view }) => ("unknown" in view ? [view.unknown] : []));
  const up = nodes.length - lines.length;
  if (lines.length === 0) return ok("connection", nodes.map(({ url }) => url).join(", "));
  const seen = lines.join("; ");
  if (up === 0) {
    return problem("connection", seen, {
      means: "nobody can lead from here, and nothing else could be checked",
      advice: "Check the URLs, the key, that the nodes run (tenure server start), and the network between.",
    });
  }
  return warning("connection", `${up} of ${nodes.length} URLs answer: ${seen}`, {
    means: "requests go to the others; when the leader is there, nobody can lead from here",
    advice: "Mend that node, or take it out of the URL.",
  });
}

function cluster(seen: readonly Seen[]): Check {
  const ids = [...new Set(seen.map(({ clusterId }) => clusterId))];
  if (ids.length === 1) return ok("cluster", `${ids[0]}, as ${seen.map(({ nodeId }) => nodeId).join(", ")}`);
  const each = seen.map(({ url, clusterId }) => `${url} is of ${clusterId}`).join("; ");
  return problem("cluster", each, {
    means:
      "epochs of two clusters do not compare: whoever has these URLs refuses one of the clusters (CLUSTER_MISMATCH)",
    advice: "Give the URLs of one cluster.",
  });
}

function version(seen: readonly Seen[]): Check {
  const versions = [...new Set(seen.map((one) => one.version))];
  if (versions.length === 1) return ok("version", versions.join(", "));
  return warning("version", seen.map((one) => `${one.nodeId} ${one.version}`).join(", "), {
    means: "an update is under way, or was not finished",
    advice: "Bring every node to one version.",
  });
}

function access(nodes: readonly NodeFacts[]): Check {
  const open = nodes.flatMap(({ url, anonymousRoles: roles }) =>
    "value" in roles && roles.value.length > 0 ? [`${url}: ${roles.value.join(", ")}`] : [],
  );
  if (open.length === 0)
    return ok("access", "nobody is let in without a key or a certificate, as far as the nodes say");
  return warning("access", `without a key, on the node's own machine: ${open.join("; ")}`, {
    means: "every process on that machine may do this, whoever runs it",
    advice: "Well for a demo. Else make keys (tenure key create): the first one of a role ends it.",
  });
}

function leader(seen: readonly Seen[]): Check {
  const without = seen.filter(({ leaderId }) => leaderId === null);
  const leaders = [...new Set(seen.flatMap(({ leaderId }) => (leaderId === null ? [] : [leaderId])))];
  if (without.length === 0 && leaders.length === 1) return ok("cluster leader", leaders.join());
  const said = seen.map(({ nodeId, leaderId }) => `${nodeId} says ${leaderId ?? "nobody"}`).join(", ");
  const remedy = {
    means: isSite(seen)
      ? "another node is taking over, or the database does not answer the nodes"
      : "an election is under way, the cluster has lost its quorum, or a node is cut off from the others",
    advice: isSite(seen)
      ? "Ask again; if it stays, look at the database with tenure doctor --backend postgres://…"
      : "Ask again; if it stays, look at the nodes (tenure cluster status) and bring back a majority.",
  };
  return leaders.length === 0 ? problem("cluster leader", said, remedy) : warning("cluster leader", said, remedy);
}

function isSite(seen: readonly Seen[]): boolean {
  return seen.some(({ backend }) => backend === "postgres");
}

function voters(seen: readonly Seen[]): Check {
  const names = seen[0]?.voters ?? [];
  const text = `${names.length}: ${names.join(", ")}`;
  if (isSite(seen)) {
    if (names.length >= 2) return ok("nodes", text);
    return warning("nodes", text, {
      means: "nobody takes over when this node ends",
      advice: "Start another one with the same database.",
    });
  }
  if (names.length >= 3) return ok("voters", text);
  return warning("voters", text, {
    means: "the cluster does not survive the loss of one node",
    advice: "Add nodes: three voters survive the loss of one (tenure member add).",
  });
}

function alerts(seen: readonly Seen[]): Check {
  const all = seen.flatMap(({ nodeId, alerts: own }) => own.map((one) => ({ nodeId, ...one })));
  if (all.length === 0) return ok("alerts", "none");
  const text = all.map(({ nodeId, name, message }) => `${nodeId}: ${name} (${message})`).join("; ");
  const remedy = { means: "the nodes themselves see trouble", advice: "tenure cluster status shows it in its place." };
  return all.some(({ severity }) => severity === "critical")
    ? problem("alerts", text, remedy)
    : warning("alerts", text, remedy);
}

function judgeLatency(
  { samples, p50Ms, p99Ms }: Latency,
  { serverTimeoutMs, marginMs, heartbeatMs }: ServersSettings["timing"],
  requestTimeoutMs: number,
): Check {
  const roomMs = serverTimeoutMs - marginMs - heartbeatMs * (1 + HEARTBEAT_JITTER);
  const seen = `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms of ${samples} linearizable reads; a heartbeat has ${roomMs.toFixed(0)} ms, and each try ${requestTimeoutMs} ms`;
  const advice =
    "Move the instance nearer to the servers, look at their disks, or raise TENURE_SERVER_TIMEOUT_MS on every instance.";
  if (p99Ms >= requestTimeoutMs) {
    return problem("latency", seen, { means: "heartbeats are given up: a healthy leader can't act", advice });
  }
  if (p99Ms >= requestTimeoutMs / 4)
    return warning("latency", seen, { means: "a few slow answers in a row close the gate", advice });
  return ok("latency", seen);
}
