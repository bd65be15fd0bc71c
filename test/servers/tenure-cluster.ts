// A cluster of Tenure's own servers as processes (`tenure server start`), on free ports of 127.0.0.1, with their files in one
// temporary directory. When `startTenureCluster` resolves, all nodes are voters and somebody leads. `end` ends every
// process, whatever it does, and removes the directory.
//
// The nodes know a key of each role by its hash; with `tls`, certificates of `tenure cert` between them and for the API.

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { ServerConfigFile } from "../../src/contract/index.ts";
import { removeDirectory, temporaryDirectory } from "./directories.ts";
import { freePort } from "./ports.ts";
import { waitFor } from "./server-process.ts";
import { COMPILE_CACHE } from "./compile-cache.ts";
import { TENURE_MAIN, TenureNode, type TenureView } from "./tenure-node.ts";

const HOST = "127.0.0.1";
const run = promisify(execFile);
/** Three processes that load their sources took 39 s where fifteen others wanted two processors. */
const START_MS_MAX = 120_000;

export const CLIENT_KEY = "client-key-of-the-test";
export const OPERATOR_KEY = "operator-key-of-the-test";
export const VIEWER_KEY = "viewer-key-of-the-test";
const AGENT_KEY = "agent-key-of-the-test";

/** For tests in which nobody is meant to campaign, however busy the machine is. A dead leader is still noticed at once. */
export const CALM_ELECTION = {
  election_timeout_min_ms: 2_000,
  election_timeout_max_ms: 4_000,
  heartbeat_interval_ms: 100,
} as const satisfies ServerConfigFile["election"];

export interface TenureClusterOptions {
  readonly nodes?: number | undefined;
  /** A Postgres URL: the nodes keep their log there, and find each other there. */
  readonly backend?: string | undefined;
  /** Mutual TLS between the nodes, and for the API; certificates of operators and programs count. */
  readonly tls?: boolean | undefined;
  readonly election?: ServerConfigFile["election"] | undefined;
  readonly snapshots?: ServerConfigFile["snapshots"] | undefined;
  /** Each node is a supervisor with two processes; its worker takes so many jobs at once. */
  readonly supervised?: { readonly capacity: number } | undefined;
  /** Before the first start of a node. */
  readonly prepare?: ((node: TenureNode) => void) | undefined;
}

export async function startTenureCluster(options: TenureClusterOptions = {}): Promise<TenureCluster> {
  const directory = await temporaryDirectory("cluster", undefined);
  const cluster = new TenureCluster(directory, options);
  try {
    if (options.tls === true) await tenureCert("init", "--dir", cluster.authority);
    const ids = Array.from({ length: options.nodes ?? 3 }, (_, at) => `n${at + 1}`);
    for (const id of ids) await cluster.make(id);
    cluster.introduce(ids);
    const isFounded = options.backend !== undefined;
    ids.forEach((id, at) => cluster.node(id).start(at === 0 && !isFounded ? ["--bootstrap"] : []));
    if (ids.length > 0) await cluster.steady(START_MS_MAX);
    return cluster;
  } catch (error) {
    await cluster.end();
    throw error;
  }
}

export class TenureCluster {
  readonly directory: string;
  /** Where the authority's files lie, with TLS. */
  readonly authority: string;
  /** Of an operator. */
  readonly key = OPERATOR_KEY;
  readonly #options: TenureClusterOptions;
  readonly #nodes = new Map<string, TenureNode>();

  /** Not for tests: startTenureCluster() makes these. */
  constructor(directory: string, options: TenureClusterOptions) {
    this.directory = directory;
    this.authority = join(directory, "ca");
    this.#options = options;
  }

  get nodes(): TenureNode[] {
    return [...this.#nodes.values()];
  }

  get urls(): string[] {
    return this.nodes.map(({ url }) => url);
  }

  node(id: string): TenureNode {
    const node = this.#nodes.get(id);
    if (node === undefined) throw new Error(`there is no node ${id}`);
    return node;
  }

  /** Configured with free ports and, with TLS, its certificate; not started, and it knows nobody until `introduce`. */
  async make(id: string): Promise<TenureNode> {
    const { tls, election, snapshots, backend } = this.#options;
    const [peer, api] = [`${HOST}:${await freePort()}`, `${HOST}:${await freePort()}`];
    const scheme = tls === true ? "https" : "http";
    const home = join(this.directory, id);
    const node = new TenureNode(home, {
      node_id: id,
      data_dir: join(home, "data"),
      ...(backend === undefined
        ? { peer: { listen: peer, ...(tls === true ? { tls: { ca_file: "ca.crt", ...pair(id) } } : {}) } }
        : { backend }),
      api: {
        listen: api,
        advertise: `${scheme}://${api}`,
        ...(tls === true ? { tls: { ...pair(id), client_ca_file: "ca.crt" } } : {}),
      },
      keys: [keyEntry("operator", OPERATOR_KEY), keyEntry("client", CLIENT_KEY), keyEntry("viewer", VIEWER_KEY)],
      ...(election === undefined ? {} : { election }),
      ...(snapshots === undefined ? {} : { snapshots }),
    });
    if (tls === true) await this.issue(id);
    const { supervised } = this.#options;
    if (supervised !== undefined) superviseIn(node, supervised.capacity);
    this.#options.prepare?.(node);
    this.#nodes.set(id, node);
    return node;
  }

  /** Every configuration names every node, as they share one file; `expect` are those whom a founder invites. */
  introduce(expect: readonly string[]): void {
    if (this.#options.backend !== undefined) return;
    const peers = Object.fromEntries(this.nodes.map(({ id, peerAddress }) => [id, peerAddress]));
    for (const node of this.nodes) node.configure({ peers, bootstrap: { expect: [...expect] } });
  }

  /** A certificate for a node, in its directory; again with the same key. */
  async issue(id: string): Promise<void> {
    const out = join(this.directory, id);
    await tenureCert("issue", "--dir", this.authority, "--out", out, "--node-id", id, "--host", HOST);
  }

  /** Files of an operator or a program: `ca.crt`, `<kind>-<name>.crt`, `<kind>-<name>.key`. */
  async issueTo(kind: "operator" | "sdk", name: string): Promise<string> {
    const out = join(this.directory, `${kind}-${name}`);
    await tenureCert("issue", "--dir", this.authority, "--out", out, `--${kind}`, name);
    return out;
  }

  /** A node that will never come back, and is not counted any more. */
  async forget(id: string): Promise<void> {
    await this.node(id).kill9();
    this.#nodes.delete(id);
  }

  /** Every node runs, votes and agrees on who leads. */
  async steady(limitMs?: number): Promise<void> {
    await waitFor("a cluster of voters with a leader", () => this.isSteady(), limitMs).catch((error: unknown) => {
      const logs = this.nodes.map((node) => `${node.id}:\n${node.log().slice(-2_000)}`);
      throw new Error(`${(error as Error).message}\n${logs.join("\n")}`);
    });
  }

  async isSteady(): Promise<boolean> {
    const views = await this.#views();
    const leaders = new Set(views.map((view) => view?.leader?.node_id));
    const isWhole = (view: TenureView | null): boolean =>
      view !== null &&
      view.is_ready &&
      view.members.length === this.#nodes.size &&
      view.members.every(({ kind }) => kind === "voter" || kind === "node");
    return views.every(isWhole) && leaders.size === 1 && !leaders.has(undefined);
  }

  /** The id of the node that leads, as the highest term among the answers says; waits until somebody does. */
  leader(): Promise<string> {
    return this.waitForLeader();
  }

  /** One that leads as it says itself, and is not `not`. */
  async waitForLeader(not?: string, limitMs?: number): Promise<string> {
    let found: TenureView | undefined;
    const what = not === undefined ? "a leader of the cluster" : `another leader than ${not}`;
    await waitFor(
      what,
      async () => {
        const leading = (await this.#views()).filter((view) => view !== null && view.role === "LEADER");
        found = leading.toSorted((a, b) => b!.term - a!.term)[0] ?? undefined;
        return found !== undefined && found.node_id !== not;
      },
      limitMs,
    );
    return found?.node_id ?? "";
  }

  // ---- by id, for those who strike at random -------------------------------------------------------

  /** kill -9. Resolves when it is gone. */
  kill(id: string): Promise<void> {
    return this.node(id).kill9();
  }

  start(id: string): void {
    this.node(id).start();
  }

  freeze(id: string): void {
    this.node(id).stop();
  }

  thaw(id: string): void {
    this.node(id).cont();
  }

  async end(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.kill9()));
    await removeDirectory(this.directory);
  }

  #views(): Promise<(TenureView | null)[]> {
    return Promise.all(this.nodes.map((node) => node.view()));
  }
}

/** Runs `tenure cert …`, as an operator would. */
async function tenureCert(...args: readonly string[]): Promise<void> {
  const env = { PATH: process.env["PATH"], NODE_COMPILE_CACHE: COMPILE_CACHE };
  await run(process.execPath, [TENURE_MAIN, "cert", ...args], { env });
}

function pair(id: string): { readonly cert_file: string; readonly key_file: string } {
  return { cert_file: `${id}.crt`, key_file: `${id}.key` };
}

function keyEntry(role: "client" | "operator" | "viewer" | "agent", key: string) {
  return { name: `the-${role}`, role, sha256: createHash("sha256").update(key).digest("hex") };
}

/** With a key of its own, as an operator would give it. */
function superviseIn(node: TenureNode, capacity: number): void {
  const keyFile = join(node.home, "agent.key");
  writeFileSync(keyFile, AGENT_KEY, { mode: 0o600 });
  node.isSupervised = true;
  node.configure({
    keys: [...(node.config.keys ?? []), keyEntry("agent", AGENT_KEY)],
    agent: { enabled: true, capacity, key_file: keyFile },
  });
}
