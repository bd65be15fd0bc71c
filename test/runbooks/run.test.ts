// The commands of the runbooks, run as they are written: against three nodes with TLS and API keys, through the incidents that the
// pages are about, and against a real Postgres and etcd. Only names of machines, paths and words in capitals are replaced by those of the
// test. A command that nothing here has run fails the last test; what no test can run is listed in NOT_RUN, and syntax.test.ts checks it.

import { execFile } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createElector, type Elector } from "../../src/entry/index.ts";
import { postgres } from "../../src/entry/postgres.ts";
import { cleanEnvironment, imagePath } from "../deploy/test-container.ts";
import { removeDirectory, temporaryDirectory } from "../servers/directories.ts";
import {
  CALM_ELECTION,
  etcdPath,
  type EtcdServer,
  OPERATOR_KEY,
  type PostgresServer,
  startEtcd,
  startPostgres,
  startTenureCluster,
  type TenureCluster,
  type TenureNode,
  waitFor,
} from "../servers/index.ts";
import { TestSite } from "../mesh/test-sites.ts";
import { findProgram } from "../servers/server-process.ts";
import { blocksOf, commandsOf, runbooks } from "./documents.ts";

const HOST = "127.0.0.1";
const COMMAND_MS_MAX = 90_000;
/** Of the machine, not of npm: they need one with systemd and a time service, or a Kubernetes. */
const NOT_RUN = [/^timedatectl$/, /^chronyc /, /^systemctl list-timers /, /^journalctl /, /^kubectl get /];
const HAS_JQ = findProgram("jq") !== undefined;
if (!HAS_JQ) NOT_RUN.push(/ \| jq /);
/** The rollover of certificates, and three islands, have tests of their own. */
const ELSEWHERE = ["cluster-certificates.md", "tc-coordinators.md", "txn-in-doubt.md"];
const IN_A_MESH = ["mesh-fork.md", "mesh-peer-lagging.md", "mesh-peer-unreachable.md", "mesh-sites.md"];
const ON_POSTGRES = [
  "database-failover.md",
  "heartbeat-late.md",
  "leader-must-go.md",
  "leadership-flaps.md",
  "nobody-leads.md",
  "pooler-in-path.md",
  "stuck-fence.md",
];
/** What only reads, or writes files of the operator's: it is run on a cluster in which nothing is wrong. */
const READS =
  /^(tenure (cluster (status|elections)|event verify|scope list|doctor|agent list|job list|cluster snapshot save)\b(?!.*--watch)|export |df |du )/;

interface Said {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The commands of one page, in order; each is taken once. */
class Page {
  readonly file: string;
  #left: string[];

  constructor(file: string, text: string) {
    this.file = file;
    this.#left = blocksOf(text)
      .filter(({ language }) => language === "sh")
      .flatMap(commandsOf);
  }

  get left(): readonly string[] {
    return this.#left;
  }

  /** The next command that is like this. */
  take(pattern: RegExp): string {
    const at = this.#left.findIndex((command) => pattern.test(command));
    if (at < 0) throw new Error(`${this.file} has no command like ${String(pattern)}, or it was run already`);
    return this.#left.splice(at, 1)[0]!;
  }
}

const PAGES = new Map(runbooks().map(({ file, text }) => [file, new Page(file, text)]));
const page = (file: string): Page => PAGES.get(file)!;

let cluster: TenureCluster;
let work: string;
let path: string;

beforeAll(async () => {
  work = await temporaryDirectory("runbooks", undefined);
  path = imagePath(work);
  writeFileSync(join(work, "operator.key"), OPERATOR_KEY, { mode: 0o600 });
  mkdirSync(join(work, "backup"));
  cluster = await startTenureCluster({
    tls: true,
    election: CALM_ELECTION,
    prepare: (node) => {
      node.isSupervised = true;
    },
  });
}, 120_000);
afterAll(async () => {
  await cluster?.end();
  await removeDirectory(work);
});

/** What the README of the runbooks exports, with this cluster's names. */
function operator(): Record<string, string> {
  const lines = blocksOf(readFileSync("docs/runbooks/README.md", "utf8"))[0]!.lines;
  const names = lines.map((line) => /^export (\w+)=/.exec(line)?.[1]);
  expect(names).toEqual(["TENURE_URL", "TENURE_SERVERS_CA_FILE", "TENURE_API_KEY_FILE"]);
  return {
    TENURE_URL: cluster.urls.join(","),
    TENURE_SERVERS_CA_FILE: join(cluster.authority, "ca.crt"),
    TENURE_API_KEY_FILE: join(work, "operator.key"),
  };
}

type Places = Readonly<Record<string, string>>;

/** Names and paths of the pages are those of this test; `node`: the one on which the command is run. */
function localised(command: string, node: TenureNode, places: Places = {}): string {
  const all: Places = {
    "/opt/tenure-NEW/bin/tenure": "tenure",
    "tenure.toml": node.configFile,
    "/backup/": join(work, "backup/"),
    "/var/lib/tenure-backup": join(work, "backup"),
    "/var/lib/tenure": node.dataDir,
    "--dir ca ": `--dir ${cluster.authority} `,
    "n4.example.net": HOST,
    ...places,
  };
  return Object.entries(all).reduce((text, [from, to]) => text.replaceAll(from, to), command);
}

function shell(command: string, environment: Record<string, string>): Promise<Said> {
  const options = { cwd: work, env: { ...cleanEnvironment(path), ...environment }, timeout: COMMAND_MS_MAX };
  return new Promise((resolve) => {
    execFile("bash", ["-c", command], options, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr }),
    );
  });
}

async function run(from: Page, pattern: RegExp, node = cluster.nodes[0]!, places: Places = {}): Promise<string> {
  return runIn(operator(), from, localised(from.take(pattern), node, places));
}

async function runIn(environment: Record<string, string>, from: Page, command: string): Promise<string> {
  const said = await shell(command, environment);
  expect(said, `${from.file}: ${command}`).toMatchObject({ code: 0 });
  return said.stdout;
}

/** Until it is done: a node that has just been started has to shake hands first. */
async function runWhenReady(from: Page, pattern: RegExp, node: TenureNode, places: Places = {}): Promise<void> {
  const command = localised(from.take(pattern), node, places);
  let last: Said | undefined;
  await waitFor(command, async () => (last = await shell(command, operator())).code === 0).catch((error: unknown) => {
    throw new Error(`${from.file}: ${(error as Error).message}\n${JSON.stringify(last)}`);
  });
}

/** `tenure server start --config tenure.toml`, which is what a node of the test runs. */
function startAs(from: Page, node: TenureNode): void {
  expect(from.take(/server start/)).toBe("tenure server start --config tenure.toml");
  node.start();
}

const SERVER_PAGES = [...PAGES.keys()].filter((file) => ![...IN_A_MESH, ...ON_POSTGRES, ...ELSEWHERE].includes(file));

describe("on a cluster with TLS and keys", () => {
  it.each(SERVER_PAGES)("what only reads in %s", async (file) => {
    const from = page(file);
    while (from.left.some((command) => READS.test(command))) await run(from, READS);
  });

  it("cluster-backup.md: a backup is checked where it is", async () => {
    const [name = ""] = readdirSync(join(work, "backup")).filter((file) => file.endsWith("Z.snap"));
    expect(name).not.toBe("");
    expect(await run(page("cluster-backup.md"), /snapshot verify/, undefined, { NAME: name })).toMatch(/checksum +ok/);
  });

  it("jobs-wait.md: a job says why it waits", async () => {
    const said = await shell("tenure job submit nobody-takes-this --detach", operator());
    expect(said).toMatchObject({ code: 0 });
    const shown = await run(page("jobs-wait.md"), /job show ID/, undefined, { ID: said.stdout.trim() });
    expect(shown).toMatch(/why pending/);
  });

  it("cluster-rolling-restart.md: a node is checked, drained, stopped and started", async () => {
    const from = page("cluster-rolling-restart.md");
    const node = cluster.node("n1");
    await run(from, /config check/, node);
    await run(from, /cluster drain n1/, node);
    expect(await node.term()).toBe(0);
    node.start();
    await run(from, /^until tenure cluster status/, node);
    await cluster.steady();
  });

  it("cluster-replace-node.md: a new disk, then another node", async () => {
    const from = page("cluster-replace-node.md");
    const lost = cluster.node("n2");
    const disk = (await lost.view())!.incarnation;
    await lost.kill9();
    lost.wipe();
    lost.start();
    const replace = from.take(/member replace n2/);
    await waitFor("the new disk to be a voter", async () => {
      // Where the leader has swapped it in by itself there is nothing to replace any more.
      await shell(replace, operator());
      const view = await lost.view();
      return (await cluster.isSteady()) && view !== null && view.incarnation !== disk;
    });
    const other = await cluster.make("n4");
    cluster.introduce(["n1", "n2", "n3"]);
    await run(from, /cert issue/, other, { "--out n4": `--out ${other.home}` });
    startAs(from, other);
    await runWhenReady(from, /member add n4/, other);
    await runWhenReady(from, /member remove n2/, other);
    await cluster.forget("n2");
    await cluster.steady();
    await waitFor("the history to be whole", async () => (await shell("tenure event verify", operator())).code === 0);
  });

  it("cluster-history.md: a segment is put back from a copy", async () => {
    const node = cluster.node("n3");
    expect(await node.term()).toBe(0);
    const [name = ""] = readdirSync(node.dataDir).filter((file) => file.startsWith("events-"));
    expect(name).not.toBe("");
    cpSync(join(node.dataDir, name), join(work, "backup", name));
    rmSync(join(node.dataDir, name));
    await run(page("cluster-history.md"), /^cp BACKUP/, node, {
      BACKUP: join(work, "backup"),
      NAME: name,
      DATA_DIR: node.dataDir,
    });
    node.start();
    await cluster.steady();
    await waitFor("the history to be whole", async () => (await shell("tenure event verify", operator())).code === 0);
  });

  it("cluster-lost-quorum.md: one survivor of three becomes a cluster of three", async () => {
    const from = page("cluster-lost-quorum.md");
    const [survivor, ...others] = cluster.nodes as [TenureNode, TenureNode, TenureNode];
    await Promise.all(others.map((node) => node.kill9()));
    await waitFor("the quorum to be missed", async () => {
      const { code, stdout } = await shell("tenure cluster status", operator());
      return code === 69 && stdout.includes("1 of 3 voters work, 2 are needed");
    });
    await survivor.term();
    await run(from, /^cp -a/, survivor);
    await run(from, /server recover/, survivor);
    startAs(from, survivor);
    for (const [at, node] of others.entries()) {
      node.wipe();
      node.start();
      await runWhenReady(from, new RegExp(`member add n${at + 2} `), node, { [`add n${at + 2} `]: `add ${node.id} ` });
    }
    await cluster.steady();
  });

  it("cluster-restore.md: a snapshot becomes a cluster of three", async () => {
    const from = page("cluster-restore.md");
    const saved = await shell("tenure cluster snapshot save nightly.snap", operator());
    expect(saved).toMatchObject({ code: 0 });
    await run(from, /snapshot verify nightly/);
    const [first, ...others] = cluster.nodes as [TenureNode, TenureNode, TenureNode];
    await Promise.all(cluster.nodes.map((node) => node.kill9()));
    for (const node of cluster.nodes) node.wipe();
    await run(from, /server restore --snapshot/, first);
    startAs(from, first);
    await cluster.waitForLeader();
    // Once more, as a copy that is inspected before it acts.
    await first.kill9();
    first.wipe();
    await run(from, /server restore --paused/, first);
    startAs(from, first);
    await runWhenReady(from, /cluster resume/, first);
    from.take(/server start/);
    for (const [at, node] of others.entries()) {
      node.start();
      await runWhenReady(from, new RegExp(`member add n${at + 2} `), node, { [`add n${at + 2} `]: `add ${node.id} ` });
    }
    await cluster.steady();
  });
});

describe("on sites of a mesh", () => {
  let sites: Record<"rome" | "paris" | "berlin", TestSite>;
  beforeAll(async () => {
    const children = ["paris", "berlin"];
    const rome = await TestSite.start({ id: "rome", children, election: CALM_ELECTION });
    const child = (id: string): Promise<TestSite> =>
      TestSite.start({ id, parents: [rome.url], election: CALM_ELECTION });
    sites = { rome, paris: await child("paris"), berlin: await child("berlin") };
    const isUp = async (): Promise<boolean> => {
      const { links } = await rome.get<{ links: readonly { connected: boolean }[] }>("/v1/mesh/sites");
      return links.length === children.length && links.every(({ connected }) => connected);
    };
    await waitFor("both sites to be linked", isUp);
  }, 240_000);
  afterAll(() => Promise.all(Object.values(sites ?? {}).map((site) => site.end())));

  /** The pages are read at Rome. */
  async function runAt(site: TestSite, from: Page, pattern: RegExp, places: Places = {}): Promise<string> {
    const environment = { TENURE_URL: site.url, TENURE_API_KEY_FILE: join(work, "operator.key") };
    const all = { SITE: "paris", URL: sites.paris.url, ...places };
    const command = Object.entries(all).reduce(
      (text, [word, value]) => text.replaceAll(word, value),
      from.take(pattern),
    );
    return runIn(environment, from, command);
  }

  it("mesh-peer-lagging.md: what a link says of itself", async () => {
    const from = page("mesh-peer-lagging.md");
    expect(await runAt(sites.rome, from, /mesh status$/)).toContain("paris");
    // A line of output for each link; the keys are those that the page asks for, and a link has them all.
    if (HAS_JQ) {
      const shown = await runAt(sites.rome, from, /mesh status -o json \| jq/);
      for (const key of ["lag_events", "missing_events"]) expect(shown).toMatch(new RegExp(`"${key}": \\d`));
      expect(shown).toMatch(/"controller": "paris"[^}]*"blamed": \{/);
    }
  });

  it("mesh-sites.md: a new line where the keys are lost, and the proof of a site", async () => {
    const from = page("mesh-sites.md");
    expect(await runAt(sites.rome, from, /mesh status/)).toContain("signing");
    expect(await runAt(sites.rome, from, /mesh sites/)).toContain("berlin");
    await runAt(sites.rome, from, /mesh evidence/);
    expect(await runAt(sites.rome, from, /mesh verify/)).toMatch(/equal/);
    await runAt(sites.rome, from, /mesh audit/);
    const before = await sites.berlin.ownLine();
    await runAt(sites.berlin, from, /mesh resume --new-line/);
    await waitFor("the ring of the new line", async () => (await sites.berlin.ownLine()) !== before);
    expect(await runAt(sites.berlin, from, /mesh key/)).toContain(sites.berlin.id);
  });

  it("mesh-fork.md: a site comes back with the ring that its operator reads out", async () => {
    const from = page("mesh-fork.md");
    await runAt(sites.rome, from, /mesh evidence paris$/);
    await runAt(sites.rome, from, /mesh evidence paris -o json/);
    const before = await sites.paris.ownLine();
    await runAt(sites.paris, from, /mesh resume --new-line/);
    await waitFor("the ring of the new line", async () => (await sites.paris.ownLine()) !== before);
    const ring = /[0-9a-f]{64}/.exec(await runAt(sites.paris, from, /mesh key/))![0];
    const written = /[0-9a-f]{64}/.exec(from.left.join("\n"))![0];
    expect(await runAt(sites.rome, from, /mesh approve/, { [written]: ring })).toContain("paris");
  });

  it("mesh-peer-unreachable.md: a site that is gone for good is evicted", async () => {
    const from = page("mesh-peer-unreachable.md");
    await runAt(sites.rome, from, /mesh status/);
    await runAt(sites.rome, from, /cluster status/, { "https://berlin-1.example:7401": sites.berlin.url });
    await sites.berlin.node.kill9();
    expect(await runAt(sites.rome, from, /mesh evict berlin/)).toContain("berlin");
  });
});

describe("on other backends", () => {
  let server: PostgresServer;
  let etcd: EtcdServer | undefined;
  const electors: Elector[] = [];

  beforeAll(async () => {
    server = await startPostgres({ settings: { fsync: "off" } });
    if (etcdPath() === undefined) console.log("etcd is not here: the README's commands are not tried with it");
    else etcd = await startEtcd();
    for (const identity of ["a", "b"]) {
      const elector = createElector({ scope: "S", identity, backend: postgres(server.url()) });
      electors.push(elector);
      void leadOn(elector);
    }
  });
  afterAll(async () => {
    await Promise.all(electors.map((elector) => elector.close()));
    await server?.end();
    await etcd?.end();
  });

  /** Until the elector is closed: leads, resigns when it is asked to, and campaigns again. */
  async function leadOn(elector: Elector): Promise<void> {
    try {
      for (;;) {
        const term = await elector.acquire();
        await new Promise((resolve) => term.signal.addEventListener("abort", resolve, { once: true }));
        await term.resign();
      }
    } catch {
      // It was closed.
    }
  }

  it.each(ON_POSTGRES)("Postgres: %s", async (file) => {
    const from = page(file);
    const environment = { TENURE_BACKEND: server.url() };
    while (from.left.length > 0) {
      const held = await waitForHeld(environment);
      const command = from.take(/^tenure /);
      const said = await shell(command, environment);
      expect(said, `${file}: ${command}`).toMatchObject({ code: 0 });
      if (/resign/.test(command)) expect(await waitForHeld(environment)).toBeGreaterThan(held);
    }
  });

  async function waitForHeld(environment: Record<string, string>): Promise<number> {
    let epoch = 0;
    await waitFor("somebody to lead S", async () => {
      const { code, stdout } = await shell("tenure scope show S -o json", environment);
      const shown = (code === 0 ? JSON.parse(stdout) : {}) as { epoch?: number; state?: string };
      epoch = shown.epoch ?? 0;
      return shown.state === "held";
    });
    return epoch;
  }

  it("README.md: its commands, with Postgres and with etcd", async () => {
    const urls = [server.url(), ...(etcd === undefined ? [] : [`etcd://${new URL(etcd.endpoint).host}`])];
    for (const url of urls) {
      for (const command of ["tenure scope list", "tenure doctor"]) {
        expect(readFileSync("docs/runbooks/README.md", "utf8")).toContain(`\n${command}\n`);
        expect(await shell(command, { TENURE_BACKEND: url }), `${command} at ${url}`).toMatchObject({ code: 0 });
      }
    }
  });
});

function leftIn(pages: Iterable<Page>): string[] {
  return [...pages]
    .filter(({ file }) => !ELSEWHERE.includes(file))
    .flatMap(({ file, left }) => left.map((command) => `${file}: ${command}`))
    .filter((line) => !NOT_RUN.some((pattern) => pattern.test(line.slice(line.indexOf(": ") + 2))));
}

it("no command of any page is left that was neither run here nor can't be run", () => {
  expect(leftIn(PAGES.values())).toEqual([]);
  const planted = new Page("copy.md", "```sh\ntimedatectl\ntenure queue pause Q\n```\n");
  expect(leftIn([planted])).toEqual(["copy.md: tenure queue pause Q"]);
});
