// Three sites of one node each as processes of this machine: a parent, and two that dial it, each through a link that can be cut. Keys of the role
// `controller` let the two in at their parent. A site that dies is started again after a while.

import type { ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ServerConfigFile } from "../../contract/index.ts";
import { Cutter } from "./cutter.ts";
import { SITE_CHECK_MS, STOP_LIMIT_MS } from "./limits.ts";
import { freePorts, newKey, sha256, spawnServer } from "./processes.ts";
import { lastWords } from "./view.ts";

const PARENT = "hub";
const CHILDREN = ["east", "west"] as const;
const NODE = "n1";
const HOST = "127.0.0.1";
/** The node's peers, its API, and the link to its parent. */
const PORTS_A_SITE = 3;

export interface DevSite {
  readonly id: string;
  readonly url: string;
  /** To its parent; null: it is the parent. */
  readonly link: Cutter | null;
}

interface Seat extends DevSite {
  readonly configFile: string;
  readonly logFile: string;
  child: ChildProcess | null;
  restart: ReturnType<typeof setTimeout> | null;
  /** Once: then its cluster is founded. */
  hasAnswered: boolean;
}

export interface DevSitesOptions {
  readonly restartAfterMs: number;
  started(id: string, pid: number): void;
  /** `isFounded`: it had answered before. */
  died(id: string, how: string, isFounded: boolean): void;
}

/** How many events of each line a site has, and the root over them, by the line's name. */
export type Heads = ReadonlyMap<string, { readonly size: number; readonly root: string }>;

export class DevSites {
  readonly directory: string;
  /** Of an operator, at all three. */
  readonly key: string;
  readonly #seats: readonly Seat[];
  readonly #options: DevSitesOptions;
  #isStopping = false;

  private constructor(directory: string, key: string, seats: readonly Seat[], options: DevSitesOptions) {
    this.directory = directory;
    this.key = key;
    this.#seats = seats;
    this.#options = options;
  }

  static async create(options: DevSitesOptions): Promise<DevSites> {
    const directory = mkdtempSync(join(tmpdir(), "tenure-dev-"));
    const key = newKey();
    const ids = [PARENT, ...CHILDREN];
    const ports = await freePorts(PORTS_A_SITE * ids.length);
    const keys = new Map<string, string>(CHILDREN.map((id) => [id, newKey()]));
    const parentPort = ports[1]!;
    const seats: Seat[] = [];
    for (const [at, id] of ids.entries()) {
      const [peer, api, link] = ports.slice(PORTS_A_SITE * at, PORTS_A_SITE * (at + 1)) as [number, number, number];
      const childKey = keys.get(id);
      const cutter = childKey === undefined ? null : await Cutter.start(link, parentPort);
      const config = configOf({ id, directory, peer, api, key, children: childKey === undefined ? keys : new Map() });
      const parent = cutter === null ? {} : parentOf(id, directory, childKey!, cutter.port);
      const configFile = join(directory, `${id}.json`);
      const mesh = { mode: "distributed", controller_id: id, ...parent } as const;
      writeFileSync(configFile, JSON.stringify({ ...config, mesh }, null, 2), { mode: 0o600 });
      seats.push({
        id,
        url: `http://${HOST}:${api}`,
        link: cutter,
        configFile,
        logFile: join(directory, `${id}.log`),
        child: null,
        restart: null,
        hasAnswered: false,
      });
    }
    return new DevSites(directory, key, seats, options);
  }

  get sites(): readonly DevSite[] {
    return this.#seats;
  }

  start(): void {
    for (const seat of this.#seats) this.#spawn(seat);
  }

  kill(id: string): void {
    this.#seats.find((seat) => seat.id === id)?.child?.kill("SIGKILL");
  }

  /** What each site has, in their order; null: it does not answer. */
  heads(): Promise<(Heads | null)[]> {
    return Promise.all(
      this.#seats.map(async (seat) => {
        const heads = await headsOf(seat.url, this.key).catch(() => null);
        if (heads !== null) seat.hasAnswered = true;
        return heads;
      }),
    );
  }

  /** Why a site's last process ended, as far as it said so. */
  lastWords(id: string): string | null {
    const seat = this.#seats.find((one) => one.id === id);
    return seat === undefined ? null : lastWords(readFileSync(seat.logFile, "utf8"));
  }

  /** Whoever dies from now on is not started again. */
  settle(): void {
    this.#isStopping = true;
    for (const { restart } of this.#seats) if (restart !== null) clearTimeout(restart);
  }

  async stop(): Promise<void> {
    this.settle();
    for (const { link } of this.#seats) link?.close();
    await Promise.all(this.#seats.map((seat) => end(seat)));
    rmSync(this.directory, { recursive: true, force: true });
  }

  #spawn(seat: Seat): void {
    const { configFile, logFile, hasAnswered } = seat;
    const { child } = spawnServer({ configFile, logFile, directory: this.directory, isFounder: !hasAnswered });
    seat.restart = null;
    seat.child = child;
    child.once("spawn", () => this.#options.started(seat.id, child.pid ?? 0));
    child.once("error", (error) => this.#ended(seat, child, error.message));
    child.once("exit", (code, signal) => this.#ended(seat, child, signal ?? `exit code ${code}`));
  }

  #ended(seat: Seat, child: ChildProcess, how: string): void {
    if (seat.child !== child) return;
    seat.child = null;
    if (this.#isStopping) return;
    seat.restart = setTimeout(() => this.#spawn(seat), this.#options.restartAfterMs);
    this.#options.died(seat.id, how, seat.hasAnswered);
  }
}

interface ToConfigure {
  readonly id: string;
  readonly directory: string;
  readonly peer: number;
  readonly api: number;
  readonly key: string;
  /** Keys of sites that may dial this one, by their ids. */
  readonly children: ReadonlyMap<string, string>;
}

function configOf({ id, directory, peer, api, key, children }: ToConfigure): ServerConfigFile {
  return {
    node_id: NODE,
    data_dir: join(directory, id),
    peer: { listen: `${HOST}:${peer}`, secret_file: join(directory, `${id}.secret`) },
    api: { listen: `${HOST}:${api}`, advertise: `http://${HOST}:${api}` },
    peers: { [NODE]: `${HOST}:${peer}` },
    bootstrap: { expect: [NODE] },
    keys: [
      { name: "npm-start", sha256: sha256(key), role: "operator" },
      // Named after the site: it may act for that one and no other.
      ...[...children].map(([name, own]) => ({ name, sha256: sha256(own), role: "controller" as const })),
    ],
  };
}

function parentOf(id: string, directory: string, key: string, port: number) {
  const keyFile = join(directory, `${id}.key`);
  writeFileSync(keyFile, key, { mode: 0o600 });
  return { parent_urls: [`http://${HOST}:${port}`], api_key_file: keyFile };
}

/** A signed note begins with the line's name, its size and its root. */
async function headsOf(url: string, key: string): Promise<Heads> {
  const signal = AbortSignal.timeout(SITE_CHECK_MS);
  const response = await fetch(`${url}/v1/mesh/heads`, { headers: { "x-api-key": key }, signal });
  if (!response.ok) throw new Error(`${url} answers ${response.status}`);
  const { heads } = (await response.json()) as { readonly heads: readonly string[] };
  return new Map(
    heads.map((note) => {
      const [line = "", size = "", root = ""] = note.split("\n", 3);
      return [line, { size: Number(size), root }];
    }),
  );
}

async function end(seat: Seat): Promise<void> {
  const { child } = seat;
  if (child === null) return;
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill("SIGTERM");
  const limit = setTimeout(() => child.kill("SIGKILL"), STOP_LIMIT_MS);
  await ended;
  clearTimeout(limit);
}
