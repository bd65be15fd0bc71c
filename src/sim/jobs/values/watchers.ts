// Who watches values, over whichever node, as a stream of the API does it: lists them, waits for changes above what it has, and lists again where
// these are not kept any more. A connection breaks with its server or by itself, and the watcher goes on at another node, which may have less.

import type { Random } from "../../../core/kit/random.ts";
import type { ValueChange, ValueView } from "../../../ports/values.ts";
import type { Owner } from "../../kernel/index.ts";
import type { JobsCluster, JobsServer } from "../cluster.ts";
import { post } from "../post.ts";
import { reached } from "../probes.ts";

const PREFIXES = ["", "led/", "free/", "count/a"];
const WATCHERS = 2;
const WAY_MS: readonly [number, number] = [0.2, 8];
const PAGE = 2;
const CHANGES = 3;
/** Between two pages of a list. */
const PAUSE_MS: readonly [number, number] = [0, 60];
/** From when a connection is looked at to the next time, and how often it is broken then. */
const LOOK_MS: readonly [number, number] = [50, 400];
const BREAKS = 0.1;
/** How often a watcher stays away then, and for how long. */
const AWAY_RATE = 0.3;
const AWAY_MS: readonly [number, number] = [300, 3_000];

interface Watcher {
  readonly random: Random;
  readonly owner: Owner;
  readonly prefix: string;
  /** What it has seen of its prefix, by name: versions. */
  readonly seen: Map<string, number>;
  /** Null: it has to list them. */
  after: number | null;
  connection: Connection | null;
}

interface Connection {
  readonly node: string;
  readonly server: JobsServer;
  readonly ended: AbortController;
}

type Told =
  | { readonly kind: "listed"; readonly values: readonly ValueView[]; readonly asOf: number }
  | { readonly kind: "changed"; readonly changes: readonly ValueChange[]; readonly through: number }
  | { readonly kind: "list again" };

export class Watchers {
  readonly #cluster: JobsCluster;
  readonly #watchers: Watcher[] = [];
  #posts = 0;

  constructor(cluster: JobsCluster) {
    this.#cluster = cluster;
  }

  start(): void {
    const { world, knobs } = this.#cluster;
    for (let at = 0; at < (knobs.valueWriters > 0 ? WATCHERS : 0); at++) {
      const random = world.random.fork(`watcher/${at}`);
      const owner = world.scheduler.owner(`watcher/${at}`);
      const prefix = at === 0 ? "" : random.pick(PREFIXES);
      const watcher: Watcher = { random, owner, prefix, seen: new Map(), after: null, connection: null };
      this.#watchers.push(watcher);
      this.#cluster.later(owner, random.between(100, 1_500), () => this.#look(watcher));
    }
  }

  /** Null: all have seen everything, and have what there is. */
  overdue(): string | null {
    const { values } = this.#cluster;
    for (const { prefix, seen } of this.#watchers) {
      const is = [...seen].map(([name, version]) => `${name}@${version}`).toSorted();
      const should = values.history.list(prefix, values.head).toSorted();
      if (is.join() !== should.join())
        return `a watcher of "${prefix}" has ${is.join()}, and there are ${should.join()}`;
    }
    return null;
  }

  #look(watcher: Watcher): void {
    const { random, connection } = watcher;
    const { names } = this.#cluster;
    const isDead = connection !== null && this.#cluster.server(connection.node) !== connection.server;
    if (isDead || (connection !== null && random.chance(BREAKS))) {
      this.#break(watcher);
      const isAway = random.chance(AWAY_RATE);
      const afterMs = random.between(...AWAY_MS);
      if (isAway) return void this.#cluster.later(watcher.owner, afterMs, () => this.#look(watcher));
    }
    const node = random.pick(names);
    const server = this.#cluster.server(node);
    if (watcher.connection === null && server !== undefined) {
      watcher.connection = { node, server, ended: new AbortController() };
      this.#ask(watcher, watcher.connection);
    }
    this.#cluster.later(watcher.owner, random.between(...LOOK_MS), () => this.#look(watcher));
  }

  /** The server hears of it in a turn of its own. */
  #break(watcher: Watcher): void {
    const { connection } = watcher;
    watcher.connection = null;
    if (connection === null || this.#cluster.server(connection.node) !== connection.server) return;
    this.#cluster.world.call(connection.node, () => connection.ended.abort());
  }

  #ask(watcher: Watcher, connection: Connection): void {
    const { after } = watcher;
    const { node } = connection;
    const random = watcher.random.fork(`post/${++this.#posts}`);
    post<Told>(this.#cluster, {
      random,
      from: null,
      to: node,
      wayMs: WAY_MS,
      ask: (server) =>
        after === null ? this.#list(watcher, node, server, random) : this.#changes(watcher, connection, server, after),
      judge: () => undefined,
      arrived: (answer) => {
        if (watcher.connection !== connection) return;
        // A node that can't answer now is left.
        if (!answer.ok) return this.#break(watcher);
        this.#told(watcher, answer.value);
        this.#ask(watcher, connection);
      },
    });
  }

  /** Page by page; what changes meanwhile comes after the first page. */
  async #list({ prefix }: Watcher, node: string, server: JobsServer, random: Random): Promise<Told> {
    const values: ValueView[] = [];
    let asOf: number | null = null;
    let after: string | null = null;
    do {
      if (asOf !== null) await server.pause(random.between(...PAUSE_MS));
      const page = server.values.list({ prefix, after, limit: PAGE });
      this.#cluster.values.listed(node, prefix, after, page);
      values.push(...page.values);
      after = page.next;
      asOf ??= page.asOf;
    } while (after !== null);
    return { kind: "listed", values, asOf };
  }

  async #changes({ prefix }: Watcher, { node, ended }: Connection, server: JobsServer, after: number): Promise<Told> {
    const { values, probes } = this.#cluster;
    const through = await server.values.changed(prefix, after, ended.signal);
    if (this.#cluster.server(node) !== server) return { kind: "list again" };
    values.woken(node, prefix, after, through);
    const found = server.values.changes(prefix, through, CHANGES);
    if (found === null) {
      reached(probes, "watcher-reset");
      return { kind: "list again" };
    }
    values.changed(node, prefix, through, CHANGES, found);
    return { kind: "changed", ...found };
  }

  #told(watcher: Watcher, told: Told): void {
    const { seen } = watcher;
    if (told.kind === "list again") {
      watcher.after = null;
      return;
    }
    watcher.after = told.kind === "listed" ? told.asOf : told.through;
    if (told.kind === "listed") {
      seen.clear();
      for (const { name, version } of told.values) seen.set(name, version);
      return;
    }
    for (const { kind, name, version } of told.changes) {
      if (kind === "deleted") seen.delete(name);
      else seen.set(name, version);
    }
  }
}
