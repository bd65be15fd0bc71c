import { describe, expect, it } from "vitest";
import { serversSettings } from "../../electors/servers/index.ts";
import { judgeServers, type NodeFacts, type NodeView, type ServersFacts } from "./servers.ts";

const VIEW: NodeView = {
  clusterId: "c1",
  nodeId: "n1",
  version: "1.0.0",
  leaderId: "n1",
  backend: "raft",
  voters: ["n1", "n2", "n3"],
  alerts: [],
};
const node = (changes: Partial<NodeView> = {}): NodeFacts => ({
  url: `https://${changes.nodeId ?? "n1"}`,
  view: { value: { ...VIEW, ...changes } },
  anonymousRoles: { value: [] },
});
const HEALTHY: ServersFacts = {
  where: "n1,n2,n3",
  settings: serversSettings("https://n1,https://n2,https://n3"),
  nodes: [node(), node({ nodeId: "n2" }), node({ nodeId: "n3" })],
  latency: { value: { samples: 200, p50Ms: 1, p99Ms: 2 } },
};

function level(name: string, changes: Partial<ServersFacts>): string | undefined {
  return judgeServers({ ...HEALTHY, ...changes }).find((check) => check.name === name)?.level;
}

describe("Tenure's own servers", () => {
  it("that are healthy have no row that is not ok", () => {
    expect(judgeServers(HEALTHY).filter((check) => check.level !== "ok")).toEqual([]);
  });

  it("of which none answers are one problem and nothing else", () => {
    const unknown = { unknown: "refused" };
    const nodes = [{ url: "https://n1", view: unknown, anonymousRoles: unknown }];
    const checks = judgeServers({ ...HEALTHY, nodes });
    expect(checks.map(({ name, level: one }) => [name, one])).toEqual([["connection", "problem"]]);
  });

  it("of which one does not answer are a warning", () => {
    const cut = { unknown: "cut" };
    const nodes = [node(), { url: "https://n2", view: cut, anonymousRoles: cut }];
    expect(level("connection", { nodes })).toBe("warning");
    expect(level("access", { nodes })).toBe("ok");
  });

  it("that let anybody in without a key are a warning that says what they may do", () => {
    const nodes = [node(), { ...node({ nodeId: "n2" }), anonymousRoles: { value: ["viewer", "agent"] } }];
    expect(level("access", { nodes })).toBe("warning");
    const row = judgeServers({ ...HEALTHY, nodes }).find(({ name }) => name === "access");
    expect(row?.seen).toContain("https://n2: viewer, agent");
  });

  it("of two clusters are a problem", () => {
    expect(level("cluster", { nodes: [node(), node({ nodeId: "n2", clusterId: "c2" })] })).toBe("problem");
  });

  it("without a leader are a problem, and of different opinions a warning", () => {
    expect(level("cluster leader", { nodes: [node({ leaderId: null })] })).toBe("problem");
    expect(level("cluster leader", { nodes: [node(), node({ nodeId: "n2", leaderId: null })] })).toBe("warning");
    expect(level("cluster leader", { nodes: [node(), node({ nodeId: "n2", leaderId: "n2" })] })).toBe("warning");
  });

  it("of two versions, with fewer than three voters, or with alerts are worth a warning, a critical alert a problem", () => {
    expect(level("version", { nodes: [node(), node({ nodeId: "n2", version: "1.1.0" })] })).toBe("warning");
    expect(level("voters", { nodes: [node({ voters: ["n1"] })] })).toBe("warning");
    const alert = { name: "disk_low", severity: "warning", message: "5 % left" };
    expect(level("alerts", { nodes: [node({ alerts: [alert] })] })).toBe("warning");
    expect(level("alerts", { nodes: [node({ alerts: [alert, { ...alert, severity: "critical" }] })] })).toBe("problem");
  });

  it("on a database need no majority, and are sent to the database where nobody leads", () => {
    const site = (changes: Partial<NodeView>): NodeFacts =>
      node({ backend: "postgres", voters: ["n1", "n2"], ...changes });
    const rows = (one: NodeFacts) => judgeServers({ ...HEALTHY, nodes: [one] });
    expect(rows(site({})).filter(({ level: one }) => one !== "ok")).toEqual([]);
    const alone = rows(site({ voters: ["n1"] })).find(({ name }) => name === "nodes");
    expect(alone).toMatchObject({ level: "warning", advice: "Start another one with the same database." });
    const idle = rows(site({ leaderId: null })).find(({ name }) => name === "cluster leader");
    expect(idle).toMatchObject({ level: "problem", advice: expect.stringContaining("postgres://") as string });
    expect(JSON.stringify([alone, idle])).not.toMatch(/quorum|majority|voter/);
  });

  it("must answer before the elector gives a try up: a quarter of the trust", () => {
    const latency = (p99Ms: number): Partial<ServersFacts> => ({ latency: { value: { samples: 9, p50Ms: 1, p99Ms } } });
    expect(HEALTHY.settings.requestTimeoutMs).toBe(1_125);
    expect(level("latency", latency(281))).toBe("ok");
    expect(level("latency", latency(282))).toBe("warning");
    expect(level("latency", latency(1_125))).toBe("problem");
  });
});
