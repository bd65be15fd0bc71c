// `tenure cluster` and `tenure member` as processes, against three real servers: what an operator does from a first look to
// a lost quorum, and a snapshot that becomes a new cluster by the documented commands. The steps build on each other.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Client, createClient } from "../../src/client/index.ts";
import { DevCluster } from "../../src/cli/dev/cluster.ts";
import { freePort, waitFor } from "../servers/index.ts";
import { atTheEnd, start, tenure, tenureJson } from "./test-tenure.ts";

const LIMIT_MS = 60_000;
const NEVER_MS = 3_600_000;
const FILES = mkdtempSync(join(tmpdir(), "tenure-cluster-cli-"));

interface Status {
  readonly leader: string | null;
  readonly term: number;
  readonly voters: number;
  readonly working: number;
  readonly members: readonly {
    readonly node_id: string;
    readonly kind: string;
    readonly health: string;
    readonly answers: boolean;
    readonly url: string;
  }[];
}

let cluster: DevCluster;
let client: Client;
let access: string[];

beforeAll(async () => {
  cluster = await DevCluster.create({ restartAfterMs: NEVER_MS });
  cluster.start();
  client = createClient({ urls: cluster.urls, key: cluster.key });
  access = ["--url", cluster.urls.join(","), "--key", cluster.key];
  await waitFor("three voters", async () => (await status()).working === 3, LIMIT_MS);
}, 2 * LIMIT_MS);

afterAll(async () => {
  await cluster.stop();
  rmSync(FILES, { recursive: true, force: true });
});

async function status(): Promise<Status & { readonly code: number | null }> {
  return await tenureJson<Status>("cluster", "status", ...access);
}

async function leaderId(): Promise<string> {
  return (await client.leader()).leaderId;
}

describe("tenure cluster status", () => {
  it("shows three members, one of which leads, from a single URL", async () => {
    const { code, stdout, stderr } = await tenure("cluster", "status", "--url", cluster.urls[2]!, "--key", cluster.key);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout.match(/^n\d +[0-9a-f]{8} +voter +(leader|follower) +ok /gm)).toHaveLength(3);
    expect(stdout).toMatch(/^leader +n\d, term \d+$/m);
    expect(stdout).not.toContain("does not answer");
  });

  it("with --watch says it again and again, until SIGINT", async () => {
    const watch = start(["cluster", "status", "--watch", "-o", "json", ...access]);
    await waitFor("two objects", () => watch.said.stdout.split("\n").length > 2, LIMIT_MS);
    watch.child.kill("SIGINT");
    expect((await watch.ended).code).toBe(130);
    const times = watch.said.stdout
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { at: string }).at);
    expect(new Set(times).size).toBe(times.length);
  });
});

describe("finding the leader", () => {
  it("takes at most 100 ms, median of 20, over all nodes", async () => {
    const took: number[] = [];
    for (let run = 0; run < 20; run++) {
      const startedMs = performance.now();
      await createClient({ urls: cluster.urls }).leader();
      took.push(performance.now() - startedMs);
    }
    expect(took.toSorted((a, b) => a - b)[10]).toBeLessThan(100);
  });
});

describe("tenure cluster transfer", () => {
  it("says from whom to whom and how long it took, and elections shows its votes", async () => {
    const old = await leaderId();
    const target = old === "n1" ? "n2" : "n1";
    const { code, stdout } = await tenure("cluster", "transfer", "--to", target, ...access);
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^${old} → ${target} in \\d+(ms|\\.\\ds)\n$`));
    expect(await leaderId()).toBe(target);
    const { elections } = await tenureJson<{
      elections: { candidate: string; reason: string; result: string; votes: unknown[] }[];
    }>("cluster", "elections", ...access);
    const [last] = elections;
    expect(last).toMatchObject({ reason: "transfer", result: "won" });
    expect(last?.candidate).toMatch(new RegExp(`^${target}@`));
    expect(last?.votes.length).toBeGreaterThanOrEqual(2);
  });

  it("refuses itself, the unknown, and what is no node id, with 64, and nothing has changed", async () => {
    const before = await status();
    for (const [target, message] of [
      [before.leader, "leads already"],
      ["n9", "n9 is no member of this cluster"],
      ["N 9", "target"],
    ] as const) {
      const { code, stdout, stderr } = await tenure("cluster", "transfer", "--to", target ?? "", ...access);
      expect({ code, stdout }).toEqual({ code: 64, stdout: "" });
      expect(stderr).toContain(message);
      expect(stderr.trim().split("\n")).toHaveLength(1);
    }
    expect(await status()).toMatchObject({ leader: before.leader, term: before.term });
  });

  it.each([
    ["without a key", () => [], "TENURE_API_KEY_FILE, or give it with TENURE_API_KEY or --key"],
    ["with a wrong key", () => ["--key", "guessed"], "The key came from --key: give one that this cluster knows"],
  ])("%s it is refused with 77, and told how this command takes one", async (_what, key, said) => {
    const before = await leaderId();
    const { code, stderr } = await tenure("cluster", "transfer", "--url", cluster.urls.join(","), ...key());
    expect(code).toBe(77);
    expect(stderr).toContain(said);
    expect(stderr).not.toContain("guessed");
    expect(await leaderId()).toBe(before);
  });

  it("a wrong key is told as such by status too, not as servers that are down", async () => {
    const { code, stdout, stderr } = await tenure(
      "cluster",
      "status",
      "--url",
      cluster.urls.join(","),
      "--key",
      "guessed",
    );
    expect({ code, stdout }).toEqual({ code: 77, stdout: "" });
    expect(stderr).toContain("--key");
    expect(stderr).not.toContain("guessed");
  });
});

describe("tenure member", () => {
  it.each([
    [["add", "n9"], 69, "never shook hands with n9"],
    [["add", "n2"], 69, "the id n2 is in use"],
    [["promote", "n2"], 64, "n2 is a voter, not a learner"],
    [["remove", "n9"], 69, "n9"],
    [["replace", "n9"], 69, "n9"],
  ])("%j is refused, and nothing has changed", async (args, exit, message) => {
    const { code, stdout, stderr } = await tenure("member", ...args, ...access);
    expect({ code, stdout }).toEqual({ code: exit, stdout: "" });
    expect(stderr).toContain(message);
    expect((await status()).voters).toBe(3);
  });
});

describe("a snapshot", () => {
  it("is saved once under a name, verified, and restored into a new cluster that goes on from there", async () => {
    const held = { scope: "kept", session: "s-1", identity: "me", ttlMs: 60_000, waitMs: 1_000 };
    const grant = await client.scopes.acquire(held);
    const file = join(FILES, "saved.snap");
    const saved = await tenureJson<{ index: number; voters: string[] }>("cluster", "snapshot", "save", file, ...access);
    expect(saved).toMatchObject({ code: 0, file });
    expect(saved.voters).toHaveLength(3);
    const verified = await tenureJson("cluster", "snapshot", "verify", file);
    expect(verified).toEqual({ ...saved, url: null });
    expect(await tenure("cluster", "snapshot", "save", file, ...access)).toMatchObject({ code: 78 });

    const config = await loneConfig("r1");
    const restored = await tenure("server", "restore", "--config", config.file, "--snapshot", file);
    expect(restored).toMatchObject({ code: 0, stderr: "" });
    const server = start(["server", "start", "--config", config.file]);
    atTheEnd(async () => {
      server.child.kill("SIGTERM");
      await server.ended;
    });
    const isUp = async (): Promise<boolean> => (await tenure("cluster", "status", "--url", config.url)).code === 0;
    await waitFor("the new cluster", isUp, LIMIT_MS).catch((error: unknown) => {
      throw new Error(`the restored server said: ${server.said.stderr}${server.said.stdout}`, { cause: error });
    });
    const scope = await createClient({ urls: [config.url] }).scopes.get("kept");
    expect(scope.epoch).toBe(grant.granted ? grant.epoch : null);
    const next = await createClient({ urls: [config.url] }).scopes.acquire({ ...held, scope: "new" });
    // Above everything that the old cluster may have granted since.
    expect(next.granted && grant.granted && next.epoch > grant.epoch).toBe(true);
  });
});

async function loneConfig(nodeId: string): Promise<{ file: string; url: string }> {
  const [peer, api] = [await freePort(), await freePort()];
  const file = join(FILES, `${nodeId}.json`);
  const { keys } = JSON.parse(readFileSync(join(cluster.directory, "n1.json"), "utf8")) as { keys: unknown };
  const config = {
    node_id: nodeId,
    data_dir: join(FILES, nodeId),
    peer: { listen: `127.0.0.1:${peer}` },
    api: { listen: `127.0.0.1:${api}`, advertise: `http://127.0.0.1:${api}` },
    keys,
  };
  writeFileSync(file, JSON.stringify(config));
  return { file, url: `http://127.0.0.1:${api}` };
}

describe("when nodes are gone", () => {
  it("status says which one is down; removing it warns, and is done", async () => {
    const leader = await leaderId();
    const victim = ["n1", "n2", "n3"].find((id) => id !== leader)!;
    cluster.kill(victim);
    await waitFor("the leader to miss it", async () => (await status()).working === 2, LIMIT_MS);
    const { code, stdout } = await tenure("cluster", "status", ...access);
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^${victim} .* unresponsive `, "m"));
    expect(stdout).toContain(`${victim} does not answer at`);
    const removed = await tenure("member", "remove", victim, ...access);
    expect(removed.code).toBe(0);
    expect(removed.stderr).toContain("warning: two voters are left");
    expect(removed.stdout).toContain(`${victim} was removed`);
    expect((await status()).voters).toBe(2);
  });

  it("without a quorum it says so with 69, and steering does not wait for ever", async () => {
    const leader = await leaderId();
    cluster.kill(leader);
    await waitFor("nobody to lead", async () => (await status()).leader === null, LIMIT_MS);
    const { code, stdout } = await tenure("cluster", "status", ...access);
    expect(code).toBe(69);
    expect(stdout).toMatch(/^leader +nobody \(1 of 2 voters work, 2 are needed\)$/m);
    const startedMs = performance.now();
    const { code: refused, stderr } = await tenure("cluster", "transfer", ...access);
    expect(refused).toBe(69);
    expect(stderr).toContain("it knows no leader");
    expect(performance.now() - startedMs).toBeLessThan(15_000);
  });
});
