// Nodes of a wire for tests, in this process: what each has heard, seen and lost, with the time.

import { afterEach } from "vitest";
import { type PeerKey, peerKey } from "../../src/core/kit/ids.ts";
import { seededRandom } from "../../src/core/kit/random.ts";
import { listenWire, type PeerTls, type TcpWire } from "../../src/drivers/wire/index.ts";
import type { LogFields, Logger } from "../../src/ports/logger.ts";
import type { Wire } from "../../src/ports/peers/wire.ts";
import { waitFor } from "../servers/index.ts";

const endings: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end();
});

/** After the test, whatever came of it. */
export function atTheEnd(end: () => Promise<void> | void): void {
  endings.push(async () => end());
}

export interface NodeOptions {
  readonly incarnation?: string;
  readonly clusterId?: string;
  readonly seeds?: Readonly<Record<string, string>>;
  readonly port?: number;
  readonly tls?: PeerTls;
  /** Without it and without TLS, whoever reaches the port is let in. */
  readonly secret?: Uint8Array;
  readonly isRemoved?: (peer: PeerKey) => boolean;
  readonly leaseEnabled?: boolean;
  readonly apiUrl?: string;
  readonly advertise?: string;
  readonly connectionAgeMs?: number;
  /** False: it listens, but has no engine yet. */
  readonly started?: boolean;
}

export interface Heard {
  readonly from: PeerKey;
  readonly bytes: Uint8Array;
  readonly atMs: number;
}

export class TestNode {
  readonly self: PeerKey;
  readonly tcp: TcpWire;
  readonly wire: Wire;
  readonly heard: Heard[] = [];
  readonly seen: PeerKey[] = [];
  readonly gone: { readonly peer: PeerKey; readonly atMs: number }[] = [];
  readonly beacons: { readonly from: PeerKey; readonly bytes: Uint8Array }[] = [];
  /** Who said that this node was removed. */
  readonly removedBy: string[] = [];
  readonly log: readonly LogLine[];
  readonly #isRemoved: (peer: PeerKey) => boolean;

  constructor(self: PeerKey, tcp: TcpWire, log: readonly LogLine[], options: NodeOptions) {
    this.self = self;
    this.#isRemoved = options.isRemoved ?? (() => false);
    this.tcp = tcp;
    this.log = log;
    this.wire = tcp.connect(self);
    tcp.onBeacon((from, bytes) => void this.beacons.push({ from, bytes }));
    if (options.started ?? true) this.start();
  }

  start(): void {
    this.wire.start({
      message: (from, bytes) => void this.heard.push({ from, bytes, atMs: performance.now() }),
      peerSeen: (peer) => void this.seen.push(peer),
      peerGone: (peer) => void this.gone.push({ peer, atMs: performance.now() }),
      removedBy: (nodeId) => void this.removedBy.push(nodeId),
      isRemoved: this.#isRemoved,
    });
  }

  send(to: TestNode | PeerKey, text: string): void {
    this.wire.send(typeof to === "string" ? to : to.self, new TextEncoder().encode(text));
  }

  get texts(): string[] {
    return this.heard.map(({ bytes }) => new TextDecoder().decode(bytes));
  }

  link(nodeId: string) {
    return this.tcp.list().find((link) => link.nodeId === nodeId);
  }

  isConnectedTo(other: TestNode): boolean {
    const link = this.link(other.self.slice(0, other.self.indexOf("@")));
    return link?.isConnected === true && link.peer === other.self;
  }

  get warnings(): string[] {
    return this.log.filter((line) => line.level === "warn").map((line) => line.message);
  }
}

export interface LogLine {
  readonly level: "info" | "warn" | "error";
  readonly fields: LogFields;
  readonly message: string;
  readonly atMs: number;
}

export function collectingLogger(): { readonly logger: Logger; readonly lines: LogLine[] } {
  const lines: LogLine[] = [];
  const at = (level: LogLine["level"]) => (fields: LogFields, message: string) => {
    lines.push({ level, fields, message, atMs: performance.now() });
  };
  return { logger: { info: at("info"), warn: at("warn"), error: at("error") }, lines };
}

export async function openNode(nodeId: string, options: NodeOptions = {}): Promise<TestNode> {
  const { logger, lines } = collectingLogger();
  const tcp = await listenWire({
    listen: { host: "127.0.0.1", port: options.port ?? 0 },
    advertise: options.advertise ?? null,
    apiUrl: options.apiUrl ?? null,
    clusterId: options.clusterId ?? "c1",
    nodeId,
    seeds: options.seeds ?? {},
    tls: options.tls ?? null,
    secret: options.secret,
    leaseEnabled: options.leaseEnabled ?? false,
    connectionAgeMs: options.connectionAgeMs,
    random: seededRandom(nodeId),
    logger,
  });
  atTheEnd(() => tcp.close());
  return new TestNode(peerKey(nodeId, options.incarnation ?? "1"), tcp, lines, options);
}

/** Both ways, so that either may send. */
export async function connected(...nodes: readonly TestNode[]): Promise<void> {
  await waitFor(`${nodes.map((node) => node.self).join(", ")} to be connected`, () =>
    nodes.every((one) => nodes.every((other) => one === other || one.isConnectedTo(other))),
  );
}

/** They go on as before: a message each way still arrives. */
export async function expectHealthy(a: TestNode, b: TestNode): Promise<void> {
  const text = `still ${performance.now()}`;
  await connected(a, b);
  a.send(b, text);
  b.send(a, text);
  await waitFor("messages both ways", () => a.texts.includes(text) && b.texts.includes(text));
}
