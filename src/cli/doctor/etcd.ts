// The doctor's judgement over what was seen of an etcd: the facts as plain data, and one function for each row. Pure;
// etcd-look.ts gathers.

import { HEARTBEAT_JITTER } from "../../core/kit/limits.ts";
import type { EtcdSettings } from "../../electors/etcd/index.ts";
import type { Latency } from "./postgres.ts";
import { type Check, type Fact, judged, ok, problem, warning } from "./report.ts";

export interface EtcdFacts {
  readonly where: string;
  readonly settings: Pick<EtcdSettings, "prefix" | "ttlSeconds" | "timing" | "requestTimeoutMs">;
  readonly members: readonly MemberFacts[];
  /** Whether our user may read and write below our prefix; a refusal's words, or null. */
  readonly access: Fact<string | null>;
  /** The TTL that a lease of ours really gets. */
  readonly grantedTtlSeconds: Fact<number>;
  /** `NOSPACE`, `CORRUPT`. */
  readonly alarms: Fact<readonly string[]>;
  readonly latency: Fact<Latency>;
}

/** One endpoint of the URL. */
export interface MemberFacts {
  readonly endpoint: string;
  readonly status: Fact<{ readonly version: string; readonly hasLeader: boolean; readonly dbBytes: number }>;
}

const VERSION_MIN = [3, 4] as const;

export function judgeEtcd(facts: EtcdFacts): Check[] {
  const up = facts.members.filter((member) => "value" in member.status);
  const reached = connection(facts.members);
  if (up.length === 0) return [reached];
  const { timing, prefix, ttlSeconds, requestTimeoutMs } = facts.settings;
  const rows = [reached, version(facts.members), leader(facts.members)];
  if (!statuses(up).some((one) => one.hasLeader)) return rows;
  return [
    ...rows,
    ...judged("rights", facts.access, (refusal) => [access(refusal, prefix)]),
    ...judged("alarms", facts.alarms, (alarms) => [judgeAlarms(alarms)]),
    ...judged("lease", facts.grantedTtlSeconds, (granted) => [lease(granted, ttlSeconds)]),
    ...judged("latency", facts.latency, (latency) => [judgeLatency(latency, timing, requestTimeoutMs)]),
  ];
}

function connection(members: readonly MemberFacts[]): Check {
  const lines = members.flatMap(({ status }) => ("unknown" in status ? [status.unknown] : []));
  const up = members.length - lines.length;
  if (lines.length === 0) return ok("connection", members.map((member) => member.endpoint).join(", "));
  const seen = lines.join("; ");
  if (up === 0) {
    return problem("connection", seen, {
      means: "nobody can lead from here, and nothing else could be checked",
      advice: "Check the endpoints in the URL, that etcd runs, and the network between.",
    });
  }
  return warning("connection", `${up} of ${members.length} endpoints answer: ${seen}`, {
    means: "requests go to the others; each failure costs one timeout",
    advice: "Mend that member, or take it out of the URL.",
  });
}

function statuses(members: readonly MemberFacts[]) {
  return members.flatMap(({ endpoint, status }) => ("value" in status ? [{ endpoint, ...status.value }] : []));
}

function version(members: readonly MemberFacts[]): Check {
  const found = statuses(members);
  const seen = [...new Set(found.map((one) => `etcd ${one.version}`))].join(", ");
  const isOld = ({ version: text }: { version: string }): boolean => {
    const [major = 0, minor = 0] = text.split(".").map(Number);
    return major < VERSION_MIN[0] || (major === VERSION_MIN[0] && minor < VERSION_MIN[1]);
  };
  if (!found.some(isOld)) return ok("version", seen);
  return problem("version", seen, {
    means: `it must be ${VERSION_MIN.join(".")} or newer: older ones have no JSON gateway under /v3`,
    advice: "Upgrade etcd.",
  });
}

function leader(members: readonly MemberFacts[]): Check {
  const without = statuses(members).filter((one) => !one.hasLeader);
  if (without.length === 0) return ok("cluster leader", "etcd has a leader");
  return problem("cluster leader", `${without.map((one) => one.endpoint).join(", ")} knows no leader`, {
    means: "etcd has lost its quorum or this member is cut off: no lease can be granted or kept",
    advice: "Look at the members (etcdctl endpoint status --cluster), and bring back a majority.",
  });
}

function access(refusal: string | null, prefix: string): Check {
  if (refusal === null) return ok("rights", `may read and write below ${JSON.stringify(prefix)}`);
  return problem("rights", refusal, {
    means: "campaigns are refused (PERMISSION_DENIED)",
    advice: `Give the user's role the whole prefix: etcdctl role grant-permission ROLE readwrite --prefix=true ${prefix}`,
  });
}

function judgeAlarms(alarms: readonly string[]): Check {
  if (alarms.length === 0) return ok("alarms", "none");
  const seen = alarms.join(", ");
  if (alarms.includes("CORRUPT")) {
    return problem("alarms", seen, {
      means: "members disagree about what is stored; etcd refuses everything",
      advice: "Follow etcd's guide for data corruption before anything else; do not disarm the alarm.",
    });
  }
  return problem("alarms", seen, {
    means: "etcd's database is full: no new leader can be written, and no history",
    advice:
      "Compact and defragment, or raise --quota-backend-bytes; then: etcdctl alarm disarm. (etcdctl compact REVISION; etcdctl defrag)",
  });
}

function lease(grantedSeconds: number, wantedSeconds: number): Check {
  if (grantedSeconds <= wantedSeconds) return ok("lease", `${grantedSeconds} s, as asked for`);
  return warning("lease", `asked for ${wantedSeconds} s, got ${grantedSeconds} s`, {
    means: `etcd's election timeout allows no shorter one: a leader that freezes is followed after ${grantedSeconds} s`,
    advice: "Lower etcd's --election-timeout, or accept it: it is safe, only slower.",
  });
}

function judgeLatency(
  { samples, p50Ms, p99Ms }: Latency,
  { serverTimeoutMs, marginMs, heartbeatMs }: EtcdSettings["timing"],
  requestTimeoutMs: number,
): Check {
  const roomMs = serverTimeoutMs - marginMs - heartbeatMs * (1 + HEARTBEAT_JITTER);
  // A beat is two questions, and each is given up after the request timeout.
  const beatMs = p99Ms >= requestTimeoutMs ? roomMs : 2 * p99Ms;
  const seen = `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms of ${samples} linearizable reads; a heartbeat (two of them) has ${roomMs.toFixed(0)} ms`;
  const advice =
    "Move the instance nearer to etcd, look at etcd's disk, or raise TENURE_SERVER_TIMEOUT_MS on every instance.";
  if (beatMs >= roomMs) {
    return problem("latency", seen, {
      means: "the gate closes between heartbeats: a healthy leader can't act",
      advice,
    });
  }
  if (beatMs >= roomMs / 4)
    return warning("latency", seen, { means: "a few slow answers in a row close the gate", advice });
  return ok("latency", seen);
}
