// A world for the log's conformance suite on a real server: three nodes, each behind a proxy of its own that can be cut, all
// on one log with a name of its own.

import { ENTRY_BYTES_MAX } from "../../src/core/kit/limits.ts";
import type { LogWorld } from "../../src/logs/conformance/index.ts";
import type { Log, LogAppended, LogHead, LogOpened, LogRecord } from "../../src/ports/log.ts";
import { type PostgresServer, startProxy, type TcpProxy } from "../servers/index.ts";
import { type LogNode, logNode } from "./test-log-node.ts";

const NODES = ["n1", "n2", "n3"] as const;
const KEPT = 60;

let worlds = 0;

/** A life of a node: once it is over, nobody is answered any more. */
class Life implements Log {
  readonly node: LogNode;
  readonly #inner: Log;
  #isOver = false;

  constructor(node: LogNode, inner: Log) {
    this.node = node;
    this.#inner = inner;
  }

  head(): LogHead {
    return this.#inner.head();
  }

  open(epoch: number): Promise<LogOpened> {
    return this.#whileAlive(this.#inner.open(epoch));
  }

  append(epoch: number, after: number, batch: readonly Uint8Array[]): Promise<LogAppended> {
    return this.#whileAlive(this.#inner.append(epoch, after, batch));
  }

  read(from: number, max: number): Promise<readonly LogRecord[]> {
    return this.#whileAlive(this.#inner.read(from, max));
  }

  subscribe(from: number, tell: (record: LogRecord) => void, compacted: () => void): () => void {
    return this.#inner.subscribe(from, tell, compacted);
  }

  end(): void {
    this.#isOver = true;
  }

  #whileAlive<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      promise.then(
        (value) => !this.#isOver && resolve(value),
        (error: unknown) => !this.#isOver && reject(error),
      );
    });
  }
}

export async function postgresLogWorld(
  server: PostgresServer,
  database: string,
  disguise: (log: Log) => Log = (log) => log,
): Promise<LogWorld> {
  const name = `world-${++worlds}`;
  const proxies = new Map<string, TcpProxy>();
  const lives = new Map<string, Life>();
  let epoch = 0;
  for (const node of NODES) proxies.set(node, await startProxy({ host: "127.0.0.1", port: server.port }));
  const start = async (node: string): Promise<void> => {
    const url = new URL(server.url(database));
    url.port = String(proxies.get(node)!.port);
    const born = logNode(url.href, node, {
      log: name,
      kept: { recordsMax: KEPT },
      pollMs: 50,
      snapshots: { everyRecords: 20, keepRecords: 20 },
    });
    lives.set(node, new Life(born, disguise(born.log)));
    await born.log.start();
  };
  const nodeOf = (node: string): LogNode => lives.get(node)!.node;
  for (const node of NODES) await start(node);
  return {
    nodes: NODES,
    log: (node) => lives.get(node)!,
    lead: () => Promise.resolve(++epoch),
    advance: async (ms) => {
      await new Promise((resolve) => setTimeout(resolve, ms));
      for (const node of NODES) {
        await nodeOf(node).log.settled();
        const [fatal] = nodeOf(node).fatal;
        if (fatal !== undefined) throw fatal;
      }
    },
    keptRecordsMin: 20,
    forgottenAfterRecords: KEPT,
    tooLargeBytes: ENTRY_BYTES_MAX + 1,
    cut: async (node) => proxies.get(node)!.cut(),
    heal: (node) => proxies.get(node)!.heal("reset"),
    crash: async (node) => {
      lives.get(node)!.end();
      // The process is gone: its connections break, and nobody says goodbye.
      proxies.get(node)!.reset();
      await nodeOf(node).log.close();
    },
    restart: start,
    dispose: async () => {
      for (const proxy of proxies.values()) await proxy.end();
      await Promise.all(NODES.map((node) => nodeOf(node).log.close()));
    },
  };
}
