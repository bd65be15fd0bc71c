// `tenure doctor` on real etcds that are made ill, and repaired as it advises.

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import {
  etcdPath,
  type EtcdServer,
  freePort,
  startEtcd,
  startPostgres,
  startProxy,
  waitFor,
} from "../servers/index.ts";
import { findProgram } from "../servers/server-process.ts";
import { doctor } from "./test-report.ts";
import { atTheEnd, tenure } from "./test-tenure.ts";

const ETCDCTL = findProgram("etcdctl");

const urlOf = (endpoint: string): string => endpoint.replace("http://", "etcd://");

async function started(flags: readonly string[] = []): Promise<EtcdServer> {
  const node = await startEtcd(flags);
  atTheEnd(() => node.end());
  return node;
}

async function post(node: EtcdServer, path: string, body: object, token?: string): Promise<Record<string, unknown>> {
  const headers = token === undefined ? {} : { authorization: token };
  const response = await fetch(`${node.endpoint}/v3/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  const answer = (await response.json()) as Record<string, unknown>;
  if (!response.ok) throw new Error(`${path}: ${JSON.stringify(answer)}`);
  return answer;
}

/** The command as advised, with the endpoint and whoever may do it. */
function etcdctl(node: EtcdServer, ...args: readonly string[]): void {
  const run = spawnSync(ETCDCTL!, ["--endpoints", node.endpoint, ...args], {
    encoding: "utf8",
    env: { ...process.env, ETCDCTL_API: "3" },
  });
  expect(`${run.stderr}${run.status}`).toBe("0");
}

type Ports = Readonly<Record<"a" | "b", readonly [client: number, peer: number]>>;

/** One of two members of a cluster, which startEtcd() has no way to make. */
function member(name: "a" | "b", ports: Ports): { kill(): Promise<void> } {
  const directory = mkdtempSync(join(tmpdir(), "tenure-etcd-"));
  const [client, peer] = ports[name].map((port) => `http://127.0.0.1:${port}`);
  const cluster = (["a", "b"] as const).map((one) => `${one}=http://127.0.0.1:${ports[one][1]}`).join(",");
  const flags = {
    name,
    "data-dir": directory,
    "listen-client-urls": client,
    "advertise-client-urls": client,
    "listen-peer-urls": peer,
    "initial-advertise-peer-urls": peer,
    "initial-cluster": cluster,
    "heartbeat-interval": "50",
    "election-timeout": "500",
  };
  const args = Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`);
  const child = spawn(etcdPath()!, args, { stdio: "ignore" });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    await ended;
    rmSync(directory, { recursive: true, force: true });
  };
  atTheEnd(kill);
  return { kill };
}

describe.skipIf(etcdPath() === undefined).concurrent("an etcd", () => {
  let node: EtcdServer;
  beforeAll(async () => {
    node = await started();
  });

  it("that is healthy has no complaint, and nothing is left in it", async () => {
    const { code, stdout } = await tenure("doctor", "--backend", urlOf(node.endpoint), "--strict", "-o", "json");
    const report = JSON.parse(stdout) as { checks: { name: string; level: string }[] };
    expect(report.checks.filter((check) => check.level !== "ok")).toEqual([]);
    expect(code).toBe(0);
    const everything = await post(node, "kv/range", { key: "AA==", range_end: "AA==", count_only: true });
    expect(everything["count"]).toBeUndefined();
    expect((await post(node, "lease/leases", {}))["leases"]).toBeUndefined();
  });

  it("of which one endpoint does not answer is a warning; of which none does, a problem", async () => {
    const dead = `127.0.0.1:${await freePort()}`;
    const half = await doctor(`etcd://${dead},127.0.0.1:${node.port}`);
    expect(half.complaints).toEqual(["connection: warning"]);
    const none = await doctor(`etcd://${dead}`);
    expect(none.complaints).toEqual(["connection: problem"]);
    expect(none.row("connection").seen).toContain("nothing listens there");
  });

  it("that is something else is told so", async () => {
    const other = await startPostgres();
    atTheEnd(() => other.end());
    const report = await doctor(`etcd://127.0.0.1:${other.port}`);
    expect(report.complaints).toEqual(["connection: problem"]);
  });

  it("whose election timeout allows no lease as short as ours is a warning", async () => {
    const slow = await started(["--election-timeout=1000", "--heartbeat-interval=100"]);
    const report = await doctor(`${urlOf(slow.endpoint)}?tenure_server_timeout_ms=1000`);
    expect(report.row("lease")).toMatchObject({ level: "warning", seen: "asked for 1 s, got 2 s" });
  });

  it.skipIf(ETCDCTL === undefined)(
    "with an alarm is a problem, and mended by the command that is advised",
    async () => {
      const full = await started();
      await post(full, "maintenance/alarm", { action: "ACTIVATE", memberID: "0", alarm: "NOSPACE" });
      const report = await doctor(urlOf(full.endpoint));
      expect(report.row("alarms")).toMatchObject({ level: "problem", seen: "NOSPACE" });
      expect(report.row("alarms").advice).toContain("etcdctl alarm disarm");
      etcdctl(full, "alarm", "disarm");
      expect((await doctor(urlOf(full.endpoint))).complaints).toEqual([]);
    },
  );

  it.skipIf(ETCDCTL === undefined)(
    "whose user may not write below our prefix is a problem, and mended by the grant that is advised",
    async () => {
      const guarded = await started();
      for (const name of ["root", "app"]) {
        await post(guarded, "auth/user/add", { name, password: `${name}-s3cret` });
        await post(guarded, "auth/role/add", { name });
        await post(guarded, "auth/user/grant", { user: name, role: name });
      }
      await post(guarded, "auth/enable", {});
      const url = (password: string): string => `etcd://app:${password}@127.0.0.1:${guarded.port}`;
      const wrong = await doctor(url("wrong-s3cret"));
      expect(wrong.row("rights").level).toBe("problem");
      const report = await doctor(url("app-s3cret"));
      expect(report.row("rights").level).toBe("problem");
      for (const { text } of [wrong, report]) expect(text).not.toContain("s3cret");
      const [, advised = ""] = /: (etcdctl .*)$/.exec(report.row("rights").advice) ?? [];
      etcdctl(guarded, "--user", "root:root-s3cret", ...advised.replace("ROLE", "app").split(" ").slice(1));
      expect((await doctor(url("app-s3cret"))).complaints).toEqual([]);
      expect((await doctor(urlOf(guarded.endpoint))).row("rights").level).toBe("problem");
    },
  );

  it("that has lost its quorum has no leader", async () => {
    const ports = { a: [await freePort(), await freePort()], b: [await freePort(), await freePort()] } as const;
    const members = { a: member("a", ports), b: member("b", ports) };
    // Asked directly: while an etcd changes its mind, each question of the doctor's waits for seconds.
    const leader = async (): Promise<unknown> => {
      try {
        const url = `http://127.0.0.1:${ports.a[0]}/v3/maintenance/status`;
        const response = await fetch(url, { method: "POST", body: "{}" });
        return ((await response.json()) as { leader?: string }).leader ?? "none";
      } catch {
        return undefined;
      }
    };
    await waitFor("the two to elect a leader", async () => !["none", undefined].includes((await leader()) as string));
    await members.b.kill();
    await waitFor("the other to notice", async () => (await leader()) === "none");
    expect((await doctor(`etcd://127.0.0.1:${ports.a[0]}`)).complaints).toEqual(["cluster leader: problem"]);
    await members.a.kill();
  });

  it("behind a slow network is a problem where a heartbeat has no room", async () => {
    const proxy = await startProxy({ host: "127.0.0.1", port: node.port });
    atTheEnd(() => proxy.end());
    proxy.delay(100);
    const report = await doctor(`etcd://127.0.0.1:${proxy.port}?tenure_server_timeout_ms=1000`);
    // Trust of 750 ms: a request is given up after 187 ms, and a round trip takes 200.
    expect(report.complaints).toEqual(["latency: problem"]);
  });
});
