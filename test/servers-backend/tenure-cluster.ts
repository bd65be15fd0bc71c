// A cluster of Tenure's own servers as processes (`tenure server start`), on free ports of 127.0.0.1, with their files in one
// temporary directory. For tests and chaos runs.
//
//   node:  running ──kill──▶ gone ──start──▶ running     the same ports, data directory and configuration
//          running ◀──freeze, thaw──▶ frozen
//
// When `startTenureCluster` resolves, all nodes are voters and somebody leads. `end` ends every process, whatever it does.

import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { removeDirectory, temporaryDirectory } from "../servers/directories.ts";
import { freePort, waitFor } from "../servers/index.ts";
import { ServerProcess } from "../servers/server-process.ts";

const HOST = "127.0.0.1";
const MAIN = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
const ANSWER_MS_MAX = 1_000;
/** Of every role; the nodes know only their hashes. */
export const CLIENT_KEY = "client-key-of-the-test";
export const OPERATOR_KEY = "operator-key-of-the-test";

interface Node {
  readonly id: string;
  readonly url: string;
  readonly directory: string;
  readonly config: string;
  process: ServerProcess | undefined;
  isFrozen: boolean;
}

interface View {
  readonly leader: { readonly node_id: string } | null;
  readonly term: number;
  readonly is_ready: boolean;
  readonly members: readonly { readonly node_id: string; readonly kind: string }[];
}

export async function startTenureCluster(size = 3): Promise<TenureCluster> {
  const directory = await temporaryDirectory("cluster", undefined);
  const ids = Array.from({ length: size }, (_, at) => `n${at + 1}`);
  const peers: Record<string, string> = {};
  for (const id of ids) peers[id] = `${HOST}:${await freePort()}`;
  const nodes: Node[] = [];
  for (const id of ids) {
    const api = `${HOST}:${await freePort()}`;
    const home = join(directory, id);
    mkdirSync(home);
    const config = join(home, "config.json");
    const keys = [keyEntry("client", CLIENT_KEY), keyEntry("operator", OPERATOR_KEY)];
    writeFileSync(
      config,
      JSON.stringify({
        node_id: id,
        data_dir: join(home, "data"),
        peer: { listen: peers[id] },
        api: { listen: api, advertise: `http://${api}` },
        peers,
        bootstrap: { expect: ids },
        keys,
      }),
    );
    nodes.push({ id, url: `http://${api}`, directory: home, config, process: undefined, isFrozen: false });
  }
  const cluster = new TenureCluster(directory, nodes);
  try {
    await cluster.found();
    return cluster;
  } catch (error) {
    await cluster.end();
    throw error;
  }
}

export class TenureCluster {
  readonly #directory: string;
  readonly #nodes: readonly Node[];

  constructor(directory: string, nodes: readonly Node[]) {
    this.#directory = directory;
    this.#nodes = nodes;
  }

  get urls(): string[] {
    return this.#nodes.map(({ url }) => url);
  }

  /** Not for tests: startTenureCluster() does this. */
  async found(): Promise<void> {
    this.#nodes.forEach((node, at) => this.#spawn(node, at === 0 ? ["--bootstrap"] : []));
    await this.steady();
  }

  /** Every node runs, votes and agrees on who leads. */
  async steady(limitMs?: number): Promise<void> {
    const isSteady = async (): Promise<boolean> => {
      const dead = this.#nodes.find((node) => node.process?.isRunning === false);
      if (dead !== undefined) throw new Error(`${dead.id} has ended:\n${dead.process?.log}`);
      return this.isSteady();
    };
    await waitFor("a cluster of voters with a leader", isSteady, limitMs);
  }

  async isSteady(): Promise<boolean> {
    const views = await Promise.all(this.#nodes.map((node) => this.#view(node)));
    const leaders = new Set(views.map((view) => view?.leader?.node_id));
    const isWhole = (view: View | undefined): boolean =>
      view !== undefined &&
      view.is_ready &&
      view.members.length === this.#nodes.length &&
      view.members.every(({ kind }) => kind === "voter");
    return views.every(isWhole) && leaders.size === 1 && !leaders.has(undefined);
  }

  /** The id of the node that leads, as the highest term among the answers says. */
  async leader(): Promise<string> {
    let found: string | undefined;
    await waitFor("a leader of the cluster", async () => {
      const views = (await Promise.all(this.#nodes.map((node) => this.#view(node)))).filter(
        (view) => view !== undefined,
      );
      const best = views.filter((view) => view.leader !== null).toSorted((a, b) => b.term - a.term)[0];
      found = best?.leader?.node_id;
      return found !== undefined;
    });
    return found ?? "";
  }

  /** kill -9. Resolves when it is gone. */
  async kill(id: string): Promise<void> {
    const node = this.#node(id);
    node.isFrozen = false;
    await node.process?.end("SIGKILL");
    node.process = undefined;
  }

  start(id: string): void {
    const node = this.#node(id);
    if (node.process === undefined) this.#spawn(node, []);
  }

  freeze(id: string): void {
    this.#node(id).isFrozen = true;
    this.#node(id).process?.signal("SIGSTOP");
  }

  thaw(id: string): void {
    this.#node(id).isFrozen = false;
    this.#node(id).process?.signal("SIGCONT");
  }

  logOf(id: string): string {
    return this.#node(id).process?.log ?? "";
  }

  async end(): Promise<void> {
    await Promise.all(this.#nodes.map(async (node) => node.process?.end("SIGKILL")));
    await removeDirectory(this.#directory);
  }

  #spawn(node: Node, flags: readonly string[]): void {
    const args = ["--no-warnings", MAIN, "server", "start", "--config", node.config, ...flags];
    node.process = new ServerProcess({
      command: process.execPath,
      args,
      directory: node.directory,
      lastSignal: "SIGKILL",
    });
  }

  async #view(node: Node): Promise<View | undefined> {
    if (node.process === undefined || node.isFrozen) return undefined;
    try {
      const signal = AbortSignal.timeout(ANSWER_MS_MAX);
      const response = await fetch(`${node.url}/v1/cluster`, { headers: { "x-api-key": CLIENT_KEY }, signal });
      return response.ok ? ((await response.json()) as View) : undefined;
    } catch {
      return undefined;
    }
  }

  #node(id: string): Node {
    const node = this.#nodes.find((one) => one.id === id);
    if (node === undefined) throw new Error(`there is no node ${id}`);
    return node;
  }
}

function keyEntry(role: "client" | "operator", key: string): object {
  return { name: `the ${role}`, role, sha256: createHash("sha256").update(key).digest("hex") };
}
