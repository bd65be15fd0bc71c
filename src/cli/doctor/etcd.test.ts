import { describe, expect, it } from "vitest";
import { etcdSettings } from "../../electors/etcd/index.ts";
import { type EtcdFacts, judgeEtcd, type MemberFacts } from "./etcd.ts";

const member = (changes: object = {}): MemberFacts => ({
  endpoint: "http://a:2379",
  status: { value: { version: "3.5.9", hasLeader: true, dbBytes: 1, ...changes } },
});
const HEALTHY: EtcdFacts = {
  where: "a:2379",
  settings: etcdSettings("http://a:2379"),
  members: [member()],
  access: { value: null },
  grantedTtlSeconds: { value: 6 },
  alarms: { value: [] },
  latency: { value: { samples: 200, p50Ms: 1, p99Ms: 2 } },
};

function level(name: string, changes: Partial<EtcdFacts>): string | undefined {
  return judgeEtcd({ ...HEALTHY, ...changes }).find((check) => check.name === name)?.level;
}

describe("an etcd", () => {
  it("that is healthy has no row that is not ok", () => {
    expect(judgeEtcd(HEALTHY).filter((check) => check.level !== "ok")).toEqual([]);
  });

  it("that does not answer is one problem and nothing else", () => {
    const checks = judgeEtcd({ ...HEALTHY, members: [{ endpoint: "http://a", status: { unknown: "refused" } }] });
    expect(checks.map(({ name, level: one }) => [name, one])).toEqual([["connection", "problem"]]);
  });

  it("of which one member of two answers is a warning", () => {
    expect(level("connection", { members: [member(), { endpoint: "http://b", status: { unknown: "cut" } }] })).toBe(
      "warning",
    );
  });

  it.each([
    ["3.3.27", "problem"],
    ["2.9.0", "problem"],
    ["3.4.0", "ok"],
    ["3.10.1", "ok"],
    ["4.0.0", "ok"],
  ])("of version %s is %s", (version, expected) => {
    expect(level("version", { members: [member({ version })] })).toBe(expected);
  });

  it("without a leader, with an alarm, or that refuses us is a problem", () => {
    const lost = { members: [member({ hasLeader: false })] };
    expect([level("cluster leader", lost), level("latency", lost)]).toEqual(["problem", undefined]);
    expect(level("alarms", { alarms: { value: ["NOSPACE"] } })).toBe("problem");
    expect(level("alarms", { alarms: { value: ["CORRUPT", "NOSPACE"] } })).toBe("problem");
    expect(level("rights", { access: { value: "permission denied" } })).toBe("problem");
  });

  it("whose leases last longer than ours should is a warning", () => {
    expect(level("lease", { grantedTtlSeconds: { value: 7 } })).toBe("warning");
  });

  it("must answer twice between a heartbeat and the end of trust: 6 s − 1.5 s − 1.2 s", () => {
    const latency = (p99Ms: number): Partial<EtcdFacts> => ({ latency: { value: { samples: 9, p50Ms: 1, p99Ms } } });
    expect(level("latency", latency(412))).toBe("ok");
    expect(level("latency", latency(413))).toBe("warning");
    expect(level("latency", latency(1_124))).toBe("warning");
  });

  it("must answer before the elector gives a request up: a quarter of the trust", () => {
    expect(HEALTHY.settings.requestTimeoutMs).toBe(1_125);
    expect(level("latency", { latency: { value: { samples: 9, p50Ms: 1, p99Ms: 1_125 } } })).toBe("problem");
  });
});
