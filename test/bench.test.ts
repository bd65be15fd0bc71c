// The benchmarks of clusters, a few rounds of each: that they end by themselves, leave no process behind, and print what they
// promise. The figures themselves mean nothing on a busy machine; only what is true of any figure is checked.

import { describe, expect, test } from "vitest";
import { etcdPath } from "./servers/index.ts";
import { bench, jsonOf, LIMIT_MS, notNegative, positive } from "./test-bench.ts";

const figures = { p50_ms: positive, p99_ms: positive, max_ms: positive };
const peer = { name: "etcd", version: expect.stringMatching(/^\d+\.\d+/), client: expect.stringContaining("gRPC") };

describe.runIf(etcdPath() !== undefined)("beside etcd", () => {
  test("writes: a row for each number of clients, with a ratio of rates", { timeout: LIMIT_MS }, async () => {
    const result = await jsonOf(
      "writes",
      "--clients",
      "1,16",
      "--rounds",
      "1",
      "--window-ms",
      "300",
      "--warm-ms",
      "300",
    );
    const row = { tenure_per_s: positive, tenure_p50_ms: positive, tenure_p99_ms: positive };
    const theirs = { peer_per_s: positive, peer_p50_ms: positive, peer_p99_ms: positive, ratio: positive };
    expect(result).toEqual({
      bench: "writes",
      peer,
      rows: [
        { clients: 1, ...row, ...theirs },
        { clients: 16, ...row, ...theirs },
      ],
    });
  });

  test("failover: the leader is killed, ours and theirs, and writes go on", { timeout: LIMIT_MS }, async () => {
    const result = await jsonOf("failover", "--runs", "2", "--peer-runs", "1");
    expect(result).toEqual({
      bench: "failover",
      kind: "kill",
      tenure: { runs: 2, ...figures, detection_ms: notNegative, discovery_ms: notNegative },
      peer: { ...peer, runs: 1, ...figures },
      ratio: positive,
    });
  });

  test(
    "transfer: leadership moves, ours and theirs, and a retry mends every refusal",
    { timeout: LIMIT_MS },
    async () => {
      const result = await jsonOf("transfer", "--runs", "2", "--peer-runs", "1");
      expect(result).toEqual({
        bench: "transfer",
        tenure: { runs: 2, ...figures, detection_ms: notNegative, discovery_ms: notNegative, refused: 0 },
        peer: { ...peer, runs: 1, ...figures },
        ratio: positive,
        forced: null,
      });
    },
  );
});

test(
  "txn: a row for each number of clients, with ratios to all three ways of the peer",
  { timeout: LIMIT_MS },
  async () => {
    const args = ["--clients", "1,4", "--rounds", "1", "--window-ms", "300", "--warm-ms", "300"];
    const figuresOfRow = { tenure_per_s: positive, p50_ms: positive, p99_ms: positive, pending: notNegative };
    const row = { ...figuresOfRow, processor_us: expect.objectContaining({ "islands: main": positive }) };
    const theirs = { peer_per_s: positive, peer_p50_ms: positive, peer_p99_ms: positive, ratio: positive };
    const ways = {
      undecided_per_s: positive,
      ratio_undecided: positive,
      home_per_s: positive,
      ratio_home: positive,
    };
    expect(await jsonOf("txn", ...args)).toEqual({
      bench: "txn",
      islands: 3,
      nodes_each: 1,
      peer: { name: "PostgreSQL", servers: 3, version: expect.stringMatching(/^\d+/) },
      rows: [
        { clients: 1, ...row, ...theirs, ...ways },
        { clients: 4, ...row, ...theirs, ...ways },
      ],
    });
  },
);

describe("without a peer", () => {
  test("failover: a leader that is stopped or cut off is replaced, and comes back", { timeout: LIMIT_MS }, async () => {
    for (const kind of ["stop", "cut"]) {
      expect(await jsonOf("failover", "--kind", kind, "--runs", "2", "--alone")).toEqual({
        bench: "failover",
        kind,
        tenure: { runs: 2, ...figures, detection_ms: notNegative, discovery_ms: notNegative },
        peer: null,
        ratio: null,
      });
    }
  });

  test("transfer: forced elections have their leader, killed ones included", { timeout: LIMIT_MS }, async () => {
    expect(await jsonOf("transfer", "--runs", "1", "--forced", "21", "--alone")).toMatchObject({
      peer: null,
      ratio: null,
      forced: { elections: 21, kills: 1, p50_ms: positive, max_ms: positive },
    });
  });

  test("idle: every part of a node, beside a bare Node", { timeout: LIMIT_MS }, async () => {
    const row = { mb: positive, of_bare_node: positive, core_percent: notNegative };
    const parts = ["bare Node", "supervisor", "controller, leading", "controller, following", "agent"];
    expect(await jsonOf("idle", "--seconds", "1")).toMatchObject({
      bench: "idle",
      rows: expect.arrayContaining(parts.map((part) => ({ part, ...row }))) as unknown,
    });
  });

  test("a wrong flag is refused before anything is started", { timeout: LIMIT_MS }, async () => {
    for (const [args, message] of [
      [["failover", "--kind", "nap"], "--kind takes kill, stop, cut, not nap"],
      [["failover", "--runs", "0"], "--runs takes a whole number, not 0"],
      [["writes", "--clients", "1,x"], "--clients takes a whole number, not x"],
      [["jobs", "--backends", "disk"], "--backends takes embedded, postgres, not disk"],
      [["events", "--events", "x"], "--events takes a whole number, not x"],
      [["idle", "--seconds", "0"], "--seconds takes a whole number, not 0"],
      [["sloth"], 'there is no "sloth"'],
    ] as const) {
      const { code, errors } = await bench(...args);
      expect(code).not.toBe(0);
      expect(errors).toContain(message);
    }
  });
});
