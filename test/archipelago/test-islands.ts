// Islands as real servers, of one node each or of more, which coordinate each other over TLS: their certificates, and what each of them shows and logs.
// `end` ends every process and every proxy, and removes the files. A TestIsland is one node: the whole island, where `nodes` is not given.
//
// Each process dials the others through proxies of its own where `isProxied`, so that one way between two islands can be cut.

import { createHash } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { Agent } from "node:https";
import { join } from "node:path";
import type { ServerConfigFile } from "../../src/contract/index.ts";
import { createCa, issue, type KeyPair } from "../../src/drivers/pki/index.ts";
import { removeDirectory, temporaryDirectory } from "../servers/directories.ts";
import {
  CALM_ELECTION,
  freePort,
  OPERATOR_KEY,
  startProxy,
  type TcpProxy,
  VIEWER_KEY,
  waitFor,
} from "../servers/index.ts";
import { type TenureAnswer, type TenureCall, TenureNode } from "../servers/tenure-node.ts";

export const ISLANDS_START_MS = 240_000;
/** For what takes seconds where nobody else uses the processors. */
export const PATIENT_MS = 90_000;
const HOST = "127.0.0.1";
const TRUST_DOMAIN = "tenure";
const DAYS = 90;
const VIEW_MS_MAX = 2_000;
const DIAL_THROUGH = new URL("../servers/dial-through.ts", import.meta.url).href;

/** What is looked at, of GET /v1/islands. */
export interface IslandsSeen {
  readonly self: {
    readonly identity: string;
    readonly incarnation: string;
    readonly endpoint: string;
    readonly tc_cluster_id: string | null;
    readonly backend_hash: string;
    readonly term: number;
    readonly roster: { readonly term: number; readonly version: number } | null;
  };
  readonly leader: { readonly identity: string; readonly term: number } | null;
  readonly acts_in_term: number | null;
  readonly waits_for: readonly string[];
  readonly left: boolean;
  readonly members: readonly { readonly identity: string; readonly endpoint: string }[];
  readonly voters: readonly { readonly identity: string; readonly incarnation: string }[];
  readonly quorum: number;
  readonly registry: readonly { readonly backend_hash: string; readonly endpoint: string }[];
}

/** A line of a server's log, by the wall clock of the machine that all of them run on. */
export interface Logged {
  readonly atMs: number;
  readonly event?: string;
  readonly scope?: string;
  readonly msg: string;
  readonly voter?: string;
  readonly term?: number;
  readonly epoch?: number;
  /** Of `chaos txn`: see its txn-kill-hook.ts. */
  readonly point?: string;
  readonly order?: number;
}

export interface IslandsOptions {
  readonly islands?: number | undefined;
  /** Of each island; with more than one they are called i1n1, i1n2, … */
  readonly nodes?: number | undefined;
  readonly isProxied?: boolean | undefined;
  readonly nodeFlags?: readonly string[] | undefined;
  /** Connections are kept where they are not of a server: for whoever asks thousands of times. */
  readonly keepsConnections?: boolean | undefined;
}

export interface Leads {
  readonly island: TestIsland;
  readonly term: number;
}

/** PEM text: whom it trusts, and who it is. */
export type TestCertificate = KeyPair & { readonly ca: string };

export class TestIsland {
  readonly id: string;
  readonly node: TenureNode;
  readonly logged: Logged[] = [];
  /** The way to each other island, by its id. */
  readonly links = new Map<string, TcpProxy>();
  /** Whether it founds its island's cluster; the others of it are invited. */
  readonly isFounder: boolean;
  readonly #ca: KeyPair;
  readonly #keepsConnections: boolean;
  /** By certificate; null: none. */
  readonly #agents = new Map<TestCertificate | null, Agent>();
  #shown: KeyPair | null = null;

  /** Not for tests: TestIslands makes these. */
  constructor(node: TenureNode, ca: KeyPair, isFounder: boolean, keepsConnections = false) {
    this.#keepsConnections = keepsConnections;
    this.id = node.id;
    this.isFounder = isFounder;
    this.node = node;
    this.#ca = ca;
    let rest = "";
    node.told = (text) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.#log(line);
    };
  }

  /** Its certificate and key, new ones each time; SIGHUP makes a server that runs read them. */
  async certify(kind: "server" | "operator" = "server", name = this.id): Promise<void> {
    const identity = { trustDomain: TRUST_DOMAIN, kind, name };
    this.#shown = await issue({ ca: this.#ca, identity, hosts: [HOST], days: DAYS, nowMs: Date.now() });
    writeFileSync(join(this.node.home, "ca.crt"), this.#ca.cert);
    writeFileSync(join(this.node.home, "api.crt"), this.#shown.cert);
    writeFileSync(join(this.node.home, "api.key"), this.#shown.key, { mode: 0o600 });
  }

  get url(): string {
    return this.node.url;
  }

  /** On an empty disk it founds a cluster of its own. */
  start(): void {
    this.node.start(existsSync(this.node.dataDir) || !this.isFounder ? [] : ["--bootstrap"]);
  }

  async restart(): Promise<void> {
    await this.node.kill9();
    this.start();
  }

  /** A call at this island by the server `as`, with its certificate, or with one of a client. */
  call<T = Readonly<Record<string, unknown>>>(
    path: string,
    call: TenureCall = {},
    as: TestIsland | TestCertificate = this,
  ): Promise<TenureAnswer<T>> {
    if (as instanceof TestIsland)
      return this.node.call<T>(path, { ...call, tls: { ca: this.#ca.cert, ...as.#shown! } });
    return this.node.call<T>(path, { ...call, tls: as, agent: this.#agent(as) });
  }

  /** Null: it does not run, or does not answer soon. */
  async view(limitMs = VIEW_MS_MAX): Promise<IslandsSeen | null> {
    if (this.node.pid === undefined) return null;
    const call = { key: VIEWER_KEY, limitMs, agent: this.#agent(null) };
    const answer = await this.node.call<IslandsSeen>("/v1/islands", call).catch(() => null);
    return answer?.status === 200 ? answer.body : null;
  }

  leave(): Promise<TenureAnswer> {
    return this.call("/v1/tc/cluster/leave", { method: "POST", body: {}, limitMs: PATIENT_MS });
  }

  announce(): Promise<TenureAnswer> {
    return this.call("/v1/tc/cluster/announce", { body: { self_endpoint: this.url } });
  }

  /** Not for tests: `end` of all islands does it. */
  closeConnections(): void {
    for (const agent of this.#agents.values()) agent.destroy();
  }

  #agent(as: TestCertificate | null): Agent | undefined {
    if (!this.#keepsConnections) return undefined;
    const found = this.#agents.get(as) ?? new Agent({ keepAlive: true, ...(as ?? { rejectUnauthorized: false }) });
    this.#agents.set(as, found);
    return found;
  }

  #log(line: string): void {
    if (!line.startsWith("{")) return;
    const { time, ...fields } = JSON.parse(line) as Omit<Logged, "atMs"> & { readonly time: string };
    this.logged.push({ ...fields, atMs: Date.parse(time) });
  }
}

export class TestIslands implements AsyncDisposable {
  readonly directory: string;
  readonly #options: IslandsOptions;
  readonly #ca: KeyPair;
  readonly #islands: TestIsland[] = [];

  private constructor(directory: string, ca: KeyPair, options: IslandsOptions) {
    this.directory = directory;
    this.#ca = ca;
    this.#options = options;
  }

  /** All of them run, vote, are registered, and one leads. */
  static async start(options: IslandsOptions = {}): Promise<TestIslands> {
    const made = await TestIslands.make(options);
    try {
      for (const island of made.all) island.start();
      await made.settled(ISLANDS_START_MS);
      return made;
    } catch (error) {
      await made.end();
      throw error;
    }
  }

  /** Configured to join each other; none is started. */
  static async make(options: IslandsOptions = {}): Promise<TestIslands> {
    const directory = await temporaryDirectory("islands", undefined);
    const islands = new TestIslands(
      directory,
      await createCa({ trustDomain: TRUST_DOMAIN, nowMs: Date.now() }),
      options,
    );
    try {
      for (let at = 1; at <= (options.islands ?? 3); at++) await islands.#addIsland(`i${at}`, options.nodes ?? 1);
      const urls = islands.all.map(({ url }) => url);
      for (const { node } of islands.all) node.configure({ tc: { join: urls } });
      if (options.isProxied === true) await islands.#link();
      return islands;
    } catch (error) {
      await islands.end();
      throw error;
    }
  }

  get all(): readonly TestIsland[] {
    return this.#islands;
  }

  get running(): readonly TestIsland[] {
    return this.#islands.filter(({ node }) => node.pid !== undefined);
  }

  island(id: string): TestIsland {
    const found = this.#islands.find((one) => one.id === id);
    if (found === undefined) throw new Error(`there is no island ${id}`);
    return found;
  }

  /** Of a program that asks for transactions, or of an operator. */
  async issue(kind: "tc" | "sdk" | "operator", name: string): Promise<TestCertificate> {
    const identity = { trustDomain: TRUST_DOMAIN, kind, name };
    return {
      ca: this.#ca.cert,
      ...(await issue({ ca: this.#ca, identity, hosts: [], days: DAYS, nowMs: Date.now() })),
    };
  }

  async #addIsland(id: string, count: number): Promise<void> {
    const ids = Array.from({ length: count }, (_, at) => (count === 1 ? id : `${id}n${at + 1}`));
    const nodes: TenureNode[] = [];
    for (const one of ids) nodes.push((await this.add(one, one === ids[0])).node);
    if (count === 1) return;
    const peers = Object.fromEntries(nodes.map((node) => [node.id, node.peerAddress]));
    for (const node of nodes) node.configure({ peers, bootstrap: { expect: ids }, election: CALM_ELECTION });
  }

  /** One more, which joins those that there are; not started. */
  async add(id: string, isFounder = true): Promise<TestIsland> {
    const home = join(this.directory, id);
    const listen = `${HOST}:${await freePort()}`;
    const node = new TenureNode(home, {
      node_id: id,
      data_dir: join(home, "data"),
      peer: { listen: `${HOST}:${await freePort()}` },
      api: {
        listen,
        advertise: `https://${listen}`,
        tls: { cert_file: "api.crt", key_file: "api.key", client_ca_file: "ca.crt" },
      },
      keys: [keyEntry("operator", OPERATOR_KEY), keyEntry("viewer", VIEWER_KEY)],
      ...(this.#islands.length === 0 ? {} : { tc: { join: this.#islands.map(({ url }) => url) } }),
    });
    node.nodeFlags = this.#options.nodeFlags ?? [];
    const island = new TestIsland(node, this.#ca, isFounder, this.#options.keepsConnections);
    await island.certify();
    this.#islands.push(island);
    return island;
  }

  async views(): Promise<readonly IslandsSeen[]> {
    return (await Promise.all(this.running.map((island) => island.view()))).filter((view) => view !== null);
  }

  /** Who acts as the leader, as it says itself. */
  async leader(not?: TestIsland, limitMs = PATIENT_MS): Promise<Leads> {
    let found: Leads | undefined;
    const what = not === undefined ? "a leader of the coordinators" : `another leader than ${not.id}`;
    await this.until(what, limitMs, async () => {
      const leads = (await this.views()).filter((view) => view.acts_in_term !== null && view.self.identity !== not?.id);
      const last = leads.toSorted((a, b) => b.acts_in_term! - a.acts_in_term!)[0];
      if (last !== undefined) found = { island: this.island(last.self.identity), term: last.acts_in_term! };
      return found !== undefined;
    });
    return found!;
  }

  async followers(): Promise<readonly TestIsland[]> {
    const { island } = await this.leader();
    return this.running.filter((one) => one !== island);
  }

  /** Those that run are the members, the voters and the registry, everybody says so, and one of them leads. */
  async settled(limitMs = PATIENT_MS): Promise<void> {
    await this.until("islands that agree", limitMs, async () => {
      const ended = this.all.find(({ node }) => node.exitCode !== null);
      if (ended !== undefined) throw new Error(`${ended.id} ended by itself with ${ended.node.exitCode}`);
      return this.isSettled(await this.views());
    });
  }

  isSettled(views: readonly IslandsSeen[]): boolean {
    const ids = this.running.map(({ id }) => id).join();
    const registered = sorted(views.map(({ self }) => `${self.endpoint} ${self.backend_hash}`));
    const endpoints = new Set(this.running.map(({ url }) => url));
    const [first] = views;
    const isWhole = (view: IslandsSeen): boolean =>
      named(view.members) === ids &&
      named(view.voters) === ids &&
      view.leader !== null &&
      view.leader.term === first!.leader?.term &&
      JSON.stringify(view.registry) === JSON.stringify(first!.registry) &&
      registered === ownEntries(view, endpoints);
    const isCurrent = (view: IslandsSeen): boolean =>
      first!.voters.some(({ incarnation }) => incarnation === view.self.incarnation);
    const leads = views.filter(({ acts_in_term: term }) => term !== null);
    return views.length === this.running.length && leads.length === 1 && views.every(isWhole) && views.every(isCurrent);
  }

  /** Fails with what every island shows and has logged last. */
  async until(what: string, limitMs: number, condition: () => boolean | Promise<boolean>): Promise<void> {
    await waitFor(what, condition, limitMs).catch(async (error: unknown) => {
      const views = (await this.views()).map((view) => JSON.stringify(view));
      const logs = this.all.map(({ id, node }) => `${id}:\n${node.log().slice(-2_500)}`);
      throw new Error([(error as Error).message, ...views, ...logs].join("\n"));
    });
  }

  async end(): Promise<void> {
    await Promise.all(this.all.map(({ node }) => node.kill9()));
    for (const island of this.all) island.closeConnections();
    await Promise.all(this.all.flatMap(({ links }) => [...links.values()].map((link) => link.end())));
    await removeDirectory(this.directory);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.end();
  }

  async #link(): Promise<void> {
    for (const from of this.all) {
      const ports = new URLSearchParams();
      for (const to of this.all) {
        if (to === from) continue;
        const port = Number(new URL(to.url).port);
        const link = await startProxy({ host: HOST, port });
        from.links.set(to.id, link);
        ports.set(String(port), String(link.port));
      }
      from.node.nodeFlags = [...from.node.nodeFlags, "--import", `${DIAL_THROUGH}?${ports.toString()}`];
    }
  }
}

function named(all: readonly { readonly identity: string }[]): string {
  return sorted(all.map(({ identity }) => identity));
}

function sorted(texts: readonly string[]): string {
  return texts.toSorted().join();
}

/** What the registry has of these endpoints: each once, or one of them has moved. */
function ownEntries({ registry }: IslandsSeen, endpoints: ReadonlySet<string>): string {
  const own = registry.filter(({ endpoint }) => endpoints.has(endpoint));
  return sorted(own.map(({ endpoint, backend_hash: hash }) => `${endpoint} ${hash}`));
}

function keyEntry(role: "operator" | "viewer", key: string): NonNullable<ServerConfigFile["keys"]>[number] {
  return { name: `the-${role}`, role, sha256: createHash("sha256").update(key).digest("hex") };
}
