// `npm run bench -- values [--clients 1,16,64] [--rounds N] [--window-ms N] [--alone] [--json]`: writes of values on three servers, 128 bytes each, fsync on:
// plain, and with the epoch of a scope that is checked in the record; next to etcd's transaction that compares the revision of a leader's key
// and puts, where etcd is on PATH.
//
// All three take turns of a window in each round, and who goes first changes; the median of the rounds counts, and of their ratios. Each client
// has one request under way: over a connection of its own to the leader of the servers, over a few gRPC connections to etcd's.

import { parseArgs } from "node:util";
import { median } from "../test/chaos/figures.ts";
import { OPERATOR_KEY, startTenureCluster, type TenureCluster } from "../test/servers/index.ts";
import { EtcdFence } from "./etcd-fence.ts";
import { HttpConnection } from "./http-connection.ts";
import { counted, pause, rounded, say } from "./stage.ts";

const CLIENTS = "1,16,64";
const ROUNDS = 7;
const WINDOW_MS = 2_000;
const WARM_MS = 3_000;
const NODES = 3;
const NAMES = 1_000;
const SCOPE = "bench";
const SCOPE_TTL_MS = 600_000;
const CONTENT = "x".repeat(128);
const EXIT_INTERRUPTED = 130;

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    clients: { type: "string" },
    rounds: { type: "string" },
    "window-ms": { type: "string" },
    alone: { type: "boolean" },
    json: { type: "boolean" },
  },
});
const rounds = counted("rounds", values.rounds, ROUNDS);
const windowMs = counted("window-ms", values["window-ms"], WINDOW_MS);
const counts = (values.clients ?? CLIENTS).split(",").map((text) => counted("clients", text, 1));
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(EXIT_INTERRUPTED));

/** One write of a client; rejects where it was not done. */
type Write = (client: number, n: number) => Promise<unknown>;

interface Window {
  readonly perS: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

class Servers {
  readonly #connections: HttpConnection[];
  readonly #epoch: number;

  private constructor(connections: HttpConnection[], epoch: number) {
    this.#connections = connections;
    this.#epoch = epoch;
  }

  static async on(cluster: TenureCluster, clients: number): Promise<Servers> {
    const { url } = cluster.node(await cluster.leader());
    const connections = Array.from({ length: clients }, () => new HttpConnection(url, OPERATOR_KEY));
    const asked = { session: "bench", identity: "bench", ttl_ms: SCOPE_TTL_MS, wait_ms: 0 };
    const path = `/v1/scopes/${SCOPE}/acquire`;
    const { epoch } = await connections[0]!.post<{ epoch: number }>(path, JSON.stringify(asked));
    return new Servers(connections, epoch);
  }

  readonly plain: Write = (client, n) => this.#put(client, n, { value: CONTENT });

  readonly fenced: Write = (client, n) => this.#put(client, n, { value: CONTENT, scope: SCOPE, epoch: this.#epoch });

  #put(client: number, n: number, body: object): Promise<unknown> {
    const name = `bench-${(client * 31 + n) % NAMES}`;
    return this.#connections[client]!.put(`/v1/values/${name}`, JSON.stringify(body));
  }

  close(): void {
    for (const connection of this.#connections) connection.close();
  }
}

async function window(write: Write, clients: number, ms: number): Promise<Window> {
  const tookMs: number[] = [];
  const untilMs = performance.now() + ms;
  const client = async (at: number): Promise<void> => {
    for (let n = 0; performance.now() < untilMs; n++) {
      const fromMs = performance.now();
      await write(at, n);
      tookMs.push(performance.now() - fromMs);
    }
  };
  await Promise.all(Array.from({ length: clients }, (_, at) => client(at)));
  tookMs.sort((a, b) => a - b);
  const at = (part: number): number => tookMs[Math.min(tookMs.length - 1, Math.floor(part * tookMs.length))] ?? 0;
  return { perS: (tookMs.length * 1_000) / ms, p50Ms: at(0.5), p99Ms: at(0.99) };
}

async function measure(clients: number, sides: ReadonlyMap<string, Write>) {
  const found = new Map<string, Window[]>([...sides.keys()].map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    const turns = [...sides];
    for (let at = 0; at < turns.length; at++) {
      const [name, write] = turns[(round + at) % turns.length]!;
      await pause();
      found.get(name)!.push(await window(write, clients, windowMs));
    }
  }
  const all = (name: string, of: (one: Window) => number): number[] => found.get(name)!.map(of);
  const ratio = (a: string, b: string): number => {
    const [ofA, ofB] = [all(a, ({ perS }) => perS), all(b, ({ perS }) => perS)];
    return rounded(median(ofA.map((one, at) => one / ofB[at]!)), 2);
  };
  const figures = (name: string) => ({
    per_s: rounded(median(all(name, ({ perS }) => perS)), 0),
    p50_ms: rounded(median(all(name, ({ p50Ms }) => p50Ms)), 2),
    p99_ms: rounded(median(all(name, ({ p99Ms }) => p99Ms)), 2),
  });
  const peer = sides.has("etcd") ? { etcd: figures("etcd"), ratio_to_etcd: ratio("fenced", "etcd") } : {};
  return {
    clients,
    plain: figures("plain"),
    fenced: figures("fenced"),
    fenced_to_plain: ratio("fenced", "plain"),
    ...peer,
  };
}

say("starting three servers");
const cluster = await startTenureCluster({ nodes: NODES });
const etcd = values.alone === true ? null : await EtcdFence.start();
try {
  const rows: Awaited<ReturnType<typeof measure>>[] = [];
  for (const clients of counts) {
    // Of each row's own: a server closes connections that are idle for long.
    const servers = await Servers.on(cluster, clients);
    const sides = new Map<string, Write>([
      ["plain", servers.plain],
      ["fenced", servers.fenced],
    ]);
    if (etcd !== null) sides.set("etcd", etcd.fenced);
    for (const write of sides.values()) await window(write, clients, WARM_MS);
    rows.push(await measure(clients, sides));
    say(JSON.stringify(rows.at(-1)));
    servers.close();
  }
  for (const { clients, plain, fenced, fenced_to_plain: toPlain, ...peer } of rows)
    console.log(
      `${clients} clients: plain ${plain.per_s}/s, fenced ${fenced.per_s}/s (${toPlain} × plain, p50 ${fenced.p50_ms} ms, p99 ${fenced.p99_ms} ms)` +
        ("etcd" in peer ? `; etcd ${peer.etcd.per_s}/s, ratio ${peer.ratio_to_etcd}` : ""),
    );
  const named = etcd === null ? null : { name: "etcd", version: etcd.version };
  if (values.json === true) console.log(JSON.stringify({ bench: "values", peer: named, rows }));
} finally {
  await etcd?.end();
  await cluster.end();
}
