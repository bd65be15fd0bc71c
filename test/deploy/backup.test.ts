// deploy/systemd/tenure-backup.service and deploy/kubernetes/backup.yaml: their command lines as they are, against a cluster with TLS,
// with a key and a certificate of the role `backup`. What a run leaves, what a failed one leaves, and that the role may do nothing else.

import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { type Route, ROUTES } from "../../src/contract/index.ts";
import { CALM_ELECTION, OPERATOR_KEY, startTenureCluster, type TenureCluster } from "../servers/index.ts";
import { cleanEnvironment, imagePath } from "./test-container.ts";

let cluster: TenureCluster;
let path: string;
let access: readonly string[];
/** As docs/deploy.md makes them. */
let key: string;
let tls: string;

interface Ran {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function run(command: readonly string[], environment: Readonly<Record<string, string>>): Ran {
  const [program = "", ...args] = command;
  const env = { ...cleanEnvironment(path), XDG_CONFIG_HOME: cluster.directory, ...environment };
  return spawnSync(program, args, { env, encoding: "utf8", timeout: 120_000 });
}

function tenure(...args: readonly string[]): string {
  const { status, stdout, stderr } = run(["tenure", ...args], {});
  expect(status, stderr).toBe(0);
  return stdout;
}

beforeAll(async () => {
  cluster = await startTenureCluster({ tls: true, election: CALM_ELECTION });
  path = imagePath(cluster.directory);
  await cluster.steady();
  access = ["--url", cluster.urls.join(","), "--ca", join(cluster.authority, "ca.crt")];
  key = tenure("key", "create", "--role", "backup", "--name", "nightly", ...access, "--key", OPERATOR_KEY).trim();
  tls = join(cluster.directory, "tls");
  tenure("cert", "issue", "--dir", cluster.authority, "--out", tls, "--backup", "nightly");
}, 180_000);
afterAll(() => cluster?.end());

/** With the unit's paths replaced, and its variables put in, as systemd does. */
function unitRun(place: string, keep: string, urls = cluster.urls.join(",")): Ran {
  const unit = readFileSync("deploy/systemd/tenure-backup.service", "utf8");
  const [, line = ""] = /^ExecStart=(.*)$/m.exec(unit) ?? [];
  expect(unit).toMatch(/^Environment=TENURE_API_KEY_FILE=%d\/api-key$/m);
  const keyFile = join(cluster.directory, "backup.key");
  writeFileSync(keyFile, `${key}\n`, { mode: 0o600 });
  const command = line
    .replaceAll("/usr/local/bin/tenure", "tenure")
    .replaceAll("/var/lib/tenure-backup", place)
    .replaceAll("/etc/tenure-backup/ca.crt", join(cluster.authority, "ca.crt"))
    .replaceAll("${BACKUP_KEEP}", keep);
  return run(command.split(" "), { TENURE_URL: urls, TENURE_API_KEY_FILE: keyFile });
}

function podRun(place: string): Ran {
  const documents = parseAllDocuments(readFileSync("deploy/kubernetes/backup.yaml", "utf8"));
  const manifest = documents[0]!.toJS() as {
    spec: { jobTemplate: { spec: { template: { spec: { containers: { args: string[] }[] } } } } };
  };
  const { args } = manifest.spec.jobTemplate.spec.template.spec.containers[0]!;
  const given = args.map((arg) => arg.replace(/^\/backup$/, place).replaceAll("=/tls/", `=${tls}/`));
  return run(["tenure", ...given], { TENURE_URL: cluster.urls.join(",") });
}

function folder(name: string): string {
  const place = join(cluster.directory, name);
  mkdirSync(place);
  return place;
}

async function lastBackups(): Promise<number[]> {
  const texts = await Promise.all(
    cluster.nodes.map(async (node) => String((await node.call("/metrics", { key: OPERATOR_KEY })).body["text"])),
  );
  return texts.map((text) => Number(/^tenure_backup_last_timestamp_seconds (\d+)$/m.exec(text)?.[1]));
}

describe("the unit", () => {
  it("saves a checked snapshot of the leader, keeps the newest, and what fails leaves them as they were", async () => {
    const place = folder("unit");
    expect(await lastBackups()).toEqual([0, 0, 0]);
    const leader = cluster.node(await cluster.leader());
    for (let at = 0; at < 3; at++) {
      const { status, stdout, stderr } = unitRun(place, "2");
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      expect(stdout).toContain(leader.url);
    }
    const kept = readdirSync(place).toSorted();
    expect(kept).toHaveLength(2);
    for (const name of kept) {
      tenure("cluster", "snapshot", "verify", join(place, name));
      expect(statSync(join(place, name)).mode & 0o777).toBe(0o600);
    }
    const shown = await lastBackups();
    expect(shown.filter((seconds) => seconds > Date.now() / 1_000 - 300)).toHaveLength(1);

    // Files of other names are nobody's; what a killed run has left goes after a day, and not before.
    const [old, young] = ["20260101T000000.000Z", "20260102T000000.000Z"].map((time) => `tenure-${time}.snap.0a.part`);
    for (const name of [old!, young!, "tenure-by-hand.snap", "notes"]) writeFileSync(join(place, name), "");
    utimesSync(join(place, old!), new Date(0), new Date(0));
    const closed = "https://127.0.0.1:9";
    expect(unitRun(place, "1", closed)).toMatchObject({ status: 69 });
    const before = [...kept, young!, "tenure-by-hand.snap", "notes"];
    expect(readdirSync(place).toSorted()).toEqual([...before, old!].toSorted());
    expect(unitRun(place, "2").status).toBe(0);
    const now = readdirSync(place).toSorted();
    const backups = now.filter((name) => /^tenure-2\d{7}T\d{6}\.\d{3}Z\.snap$/.test(name));
    expect(backups).toEqual([kept[1], expect.any(String)]);
    expect(now.filter((name) => !backups.includes(name))).toEqual(["notes", young!, "tenure-by-hand.snap"].toSorted());
  }, 180_000);

  it("saves from whoever is furthest where nobody leads, and goes on after a failover", async () => {
    const place = folder("failover");
    const was = await cluster.leader();
    await cluster.kill(was);
    await cluster.waitForLeader(was);
    expect(unitRun(place, "9")).toMatchObject({ status: 0 });
    const [other] = cluster.nodes.filter(({ id }) => id !== was);
    await other!.kill9();
    const alone = unitRun(place, "9");
    expect(alone, alone.stderr).toMatchObject({ status: 0 });
    // It may be one that was cut off for days: nobody could tell from the file's name.
    expect(alone.stderr).toMatch(/does not lead, and no node that does was reached/);
    expect(readdirSync(place)).toHaveLength(2);
    for (const node of [cluster.node(was), other!]) node.start();
    await cluster.steady();
  }, 180_000);
});

it("the CronJob's command line saves one with its certificate", () => {
  const place = folder("pod");
  const { status, stdout, stderr } = podRun(place);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  expect(readdirSync(place)).toHaveLength(1);
  expect(stdout).toContain(join(place, readdirSync(place)[0]!));
}, 120_000);

describe("the role backup", () => {
  const OPEN = ["livez", "readyz", "saveSnapshot", "readSnapshot", "storedSnapshot"];

  it.each(["key", "certificate"] as const)(
    "may call nothing else with its %s, on any node",
    async (how) => {
      const pem = (name: string): string => readFileSync(join(tls, name), "utf8");
      const certificate = { ca: pem("ca.crt"), cert: pem("backup-nightly.crt"), key: pem("backup-nightly.key") };
      const as = how === "key" ? { key } : { key: null, tls: certificate };
      for (const node of cluster.nodes) {
        const allowed: string[] = [];
        for (const [id, { method, path: route, identities }] of Object.entries(ROUTES) as [string, Route][]) {
          const body = method === "POST" || method === "PUT" ? { nonsense: 1 } : undefined;
          const { status, body: answer } = await node.call(route.replaceAll(/:\w+/g, "1"), {
            method,
            body,
            ...as,
          });
          const refused = identities === undefined ? "PERMISSION_DENIED" : expect.stringMatching(/^tc_/);
          if (status === 403) expect(answer["error"]).toEqual(refused);
          else allowed.push(id);
          expect(status).not.toBe(401);
        }
        expect(allowed.toSorted()).toEqual(OPEN.toSorted());
      }
    },
    120_000,
  );
});
