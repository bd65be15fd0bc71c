// The inside of the wire: it owns the listener, the links and the inbounds, and brings them together with the engine.
//
//   listening ──start──▶ started ──stop──▶ stopped ──close──▶ closed
//
// Before `start` this node has no disk, so hellos are refused as "starting"; whoever asks for the cluster is answered.
//
// Invariants: at most one link stands for each peer key, and messages to that peer go there; a refused connection
// changes nothing but counters and `trouble`.

import type { AddressInfo, Server, Socket } from "node:net";
import type { Server as TlsServer, TLSSocket } from "node:tls";
import { assert } from "../../core/kit/assert.ts";
import { incarnationOf, nodeIdOf, type PeerKey, peerKey } from "../../core/kit/ids.ts";
import { BEACON_BYTES_MAX, QUERY_BYTES_MAX } from "../../core/kit/limits.ts";
import type { Random } from "../../core/kit/random.ts";
import type { Answering } from "../../ports/peers/queries.ts";
import type { PeerLink } from "../../ports/peers/peers.ts";
import type { Wire, WireHandlers } from "../../ports/peers/wire.ts";
import { type Address, formatAddress } from "./address.ts";
import { Dial, type DialResult, type DialTarget } from "./dial.ts";
import { Door } from "./handshake/door.ts";
import { FRAME } from "./frame.ts";
import type { Ack, Hello, Introduction, Purpose, Refuse } from "./handshake/hello.ts";
import { HeldSockets } from "./held-sockets.ts";
import { Inbound, type InboundHost } from "./inbound.ts";
import { removedText, type Verdict } from "./handshake/judge.ts";
import {
  BULK_ABOVE_BYTES,
  BULK_ASSEMBLIES_MAX,
  CONNECTION_AGE_MS_MAX,
  CONNECTIONS_MAX,
  OWN_STALL_MS,
  PING_INTERVAL_MS,
} from "./limits.ts";
import type { Link } from "./link.ts";
import type { LinkHost } from "./link-host.ts";
import { Links } from "./links.ts";
import { Refusals } from "./refusals.ts";
import { type Channel, type PeerTls, Security } from "./handshake/security.ts";
import { noWireCounts, type WireStats } from "./stats.ts";
import type { TcpWire, WireOptions } from "./tcp-wire.ts";
import { tlsRefusal } from "./handshake/tls-refusal.ts";

export class Hub implements TcpWire, LinkHost, InboundHost {
  readonly port: number;
  readonly address: string;
  readonly #channel: Channel | null;
  readonly #door = new Door();
  readonly random: Random;
  readonly counts = noWireCounts();
  readonly connectionAgeMs: number;
  readonly refusals: Refusals;
  readonly #options: WireOptions;
  readonly #server: Server | TlsServer;
  readonly #links: Links;
  readonly #routes = new Map<PeerKey, Link>();
  readonly #inbounds = new Set<Inbound>();
  readonly #sockets = new HeldSockets((address) => {
    const message = "too many connections without a handshake are open, and this was the oldest of them";
    this.refused(address, { reason: "too-many", message });
  });
  readonly #timer: NodeJS.Timeout;
  #tickAtMs = performance.now();
  #self: PeerKey | null = null;
  #handlers: WireHandlers | null = null;
  #beacon: ((from: PeerKey, beacon: Uint8Array) => void) | null = null;
  #answering: Answering | null = null;
  #askable: ((peer: PeerKey) => void) | null = null;
  #closing: Promise<void> | null = null;

  /** Not for others: listenWire() makes these. */
  constructor(
    options: WireOptions,
    seeds: ReadonlyMap<string, Address>,
    channel: Channel | null,
    server: Server | TlsServer,
  ) {
    this.#options = options;
    this.#server = server;
    this.#channel = channel;
    this.connectionAgeMs = options.connectionAgeMs ?? CONNECTION_AGE_MS_MAX;
    this.random = options.random.fork("wire");
    this.refusals = new Refusals(options.logger);
    this.port = (server.address() as AddressInfo).port;
    this.address = options.advertise ?? formatAddress({ host: options.listen.host, port: this.port });
    this.#links = new Links(this, seeds, this.#security === null);
    server.on("connection", (socket: Socket) => this.#sockets.hold(socket));
    server.on("drop", (from) => {
      const message = `${CONNECTIONS_MAX} connections are open already`;
      this.refused(from?.remoteAddress ?? "somebody", { reason: "too-many", message });
    });
    server.on("error", (error) => options.logger.error({ error: error.message }, "the peer listener failed"));
    if (channel === null) server.on("connection", (socket: Socket) => this.#accept(socket, null));
    else {
      server.on("secureConnection", (socket: TLSSocket) => this.#acceptSecure(socket, channel));
      server.on("tlsClientError", (error: NodeJS.ErrnoException, socket: TLSSocket) => {
        const refusal = tlsRefusal(error);
        if (refusal !== null) this.refused(socket.remoteAddress ?? "somebody", channel.refusal(refusal));
        socket.destroy();
      });
    }
    this.#timer = setInterval(() => this.#tick(), PING_INTERVAL_MS);
  }

  // ---- the Wire port -------------------------------------------------------------------------------

  connect(self: PeerKey): Wire {
    assert(this.#self === null, "a wire is connected once", () => self);
    assert(nodeIdOf(self) === this.#options.nodeId, "a wire is connected as its own node", () => self);
    this.#self = self;
    return {
      start: (handlers) => {
        if (this.#closing !== null) return;
        this.#handlers = handlers;
        this.#links.dialAll();
      },
      send: (to, bytes) => this.#send(to, bytes),
      sendLarge: (to, bytes, rest) => this.#sendLarge(to, bytes, rest),
      isBusy: (to) => this.#routes.get(to)?.bulk.isBusy ?? false,
      stop: () => {
        this.#handlers = null;
      },
    };
  }

  #send(to: PeerKey, bytes: Uint8Array): void {
    if (this.#handlers === null) return;
    const link = this.#routes.get(to);
    if (link === undefined || !link.isConnected) {
      this.counts.droppedUnconnected++;
    } else if (bytes.length > BULK_ABOVE_BYTES) {
      this.#sendBulk(link, [bytes]);
    } else if (link.send(FRAME.message, bytes)) {
      this.counts.sentMessages++;
      this.counts.sentBytes += bytes.length;
    } else {
      this.counts.droppedFull++;
    }
  }

  #sendLarge(to: PeerKey, bytes: Uint8Array, rest: Uint8Array): void {
    if (bytes.length + rest.length <= BULK_ABOVE_BYTES) this.#send(to, Buffer.concat([bytes, rest]));
    else if (this.#handlers !== null) this.#sendBulk(this.#routes.get(to), [bytes, rest]);
  }

  #sendBulk(link: Link | undefined, parts: readonly Uint8Array[]): void {
    if (link === undefined) this.counts.droppedUnconnected++;
    else if (!link.bulk.send(parts)) this.counts.droppedBulks++;
  }

  // ---- the Peers port ------------------------------------------------------------------------------

  list(): readonly PeerLink[] {
    return this.#links.list();
  }

  broadcast(beacon: Uint8Array): void {
    assert(beacon.length <= BEACON_BYTES_MAX, "a beacon is small", () => `${beacon.length} bytes`);
    if (this.#handlers === null) return;
    for (const link of this.#routes.values()) {
      if (link.isConnected && !link.send(FRAME.beacon, beacon)) this.counts.droppedFull++;
    }
  }

  onBeacon(listener: (from: PeerKey, beacon: Uint8Array) => void): void {
    assert(this.#beacon === null, "beacons have one listener");
    this.#beacon = listener;
  }

  // ---- the PeerQueries port ------------------------------------------------------------------------

  askable(): readonly PeerKey[] {
    if (this.#handlers === null) return [];
    const links = [...this.#routes].filter(([, link]) => link.isConnected && link.questions !== null);
    return links.map(([peer]) => peer);
  }

  ask(peer: PeerKey, query: Uint8Array): Promise<Uint8Array | null> {
    assert(query.length <= QUERY_BYTES_MAX, "a query is small", () => `${query.length} bytes`);
    const link = this.#handlers === null ? undefined : this.#routes.get(peer);
    return link?.questions?.ask(query) ?? Promise.resolve(null);
  }

  onQuery(answer: Answering): void {
    assert(this.#answering === null, "queries have one who answers");
    this.#answering = answer;
  }

  onAskable(listener: (peer: PeerKey) => void): void {
    assert(this.#askable === null, "one listens for peers that can be asked");
    this.#askable = listener;
  }

  cloned(): readonly string[] {
    return this.#door.cloned();
  }

  stats(): WireStats {
    let queuedBytes = 0;
    for (const link of this.#routes.values()) queuedBytes += link.queuedBytes;
    return {
      ...this.counts,
      refused: this.refusals.ours,
      refusedByPeers: this.refusals.theirs,
      connected: this.#routes.size,
      queuedBytes,
      certificateNotAfterMs: this.#security?.notAfterMs ?? null,
    };
  }

  reload(tls: PeerTls): void {
    const security = this.#security;
    assert(security !== null, "a wire without certificates has none to reload");
    security.reload(tls);
    (this.#server as TlsServer).setSecureContext(security.listenOptions());
    const until = new Date(security.notAfterMs).toISOString();
    this.#options.logger.info(
      { not_after: until },
      `new connections to peers use the certificate that is valid until ${until}`,
    );
  }

  /** Stops listening first: whoever dials again is refused, and so knows that this node is gone. */
  close(): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      this.#handlers = null;
      clearInterval(this.#timer);
      this.#server.close(() => resolve());
      this.#links.close();
      this.#sockets.end();
    });
    return this.#closing;
  }

  // ---- what links ask ------------------------------------------------------------------------------

  hello(purpose: Purpose): Hello {
    return this.#door.hello(this.#introduction(), purpose);
  }

  dial(target: DialTarget, purpose: Purpose, result: DialResult): Dial {
    return new Dial(target, this.hello(purpose), this.#channel, result);
  }

  refusedBy(nodeId: string, { reason, message }: Refuse): void {
    this.refusals.refusedBy(nodeId, reason, message);
    if (reason === "removed") this.#handlers?.removedBy?.(nodeId);
  }

  connected(link: Link, ack: Ack): void {
    const peer = peerKey(ack.nodeId, ack.incarnation);
    const present = this.#routes.get(peer);
    if (present !== undefined && present !== link) {
      // Two addresses of one disk. The configuration's is kept, else the new one: the other side has just answered there.
      this.#links.forget(present.isSeed ? link : present);
      if (present.isSeed) return;
    }
    this.#routes.set(peer, link);
    this.#options.logger.info({ peer, address: formatAddress(link.address) }, `connected to ${String(link)}`);
    for (const [nodeId, address] of ack.peers) this.#links.tell(nodeId, address);
    this.#handlers?.peerSeen(peer);
    if (this.#handlers !== null && link.questions !== null) this.#askable?.(peer);
  }

  unlinked(link: Link, peer: PeerKey): void {
    if (this.#routes.get(peer) === link) this.#routes.delete(peer);
  }

  lost(link: Link, peer: PeerKey, why: string): void {
    this.unlinked(link, peer);
    if (this.#closing === null) this.#options.logger.warn({ peer }, `lost the connection to ${String(link)}: ${why}`);
  }

  hears(peer: PeerKey): boolean {
    for (const inbound of this.#inbounds) if (inbound.peer === peer && inbound.purpose === "peer") return true;
    return false;
  }

  gone(peer: PeerKey): void {
    // A stream ends after its data, but a bulk has a stream of its own.
    for (const inbound of this.#inbounds) if (inbound.peer === peer) inbound.close();
    this.counts.peersGone++;
    this.#options.logger.warn({ peer }, `${peer} is gone: its connections ended, and nobody listens at its address`);
    this.#handlers?.peerGone(peer);
  }

  // ---- what inbounds ask ---------------------------------------------------------------------------

  judge(hello: Hello, certified: string | null): Verdict {
    return this.#door.judge(hello, certified, {
      us: this.#introduction(),
      isStarted: this.#handlers !== null,
      peers: this.#links.told(),
      isRemoved: (peer) => this.#isRemoved(peer),
      hasRoomForBulk: (peer) => this.#hasRoomForBulk(peer),
    });
  }

  refused(peer: string, refusal: Refuse): void {
    this.refusals.refuse(peer, refusal.reason, refusal.message);
  }

  accepted(inbound: Inbound, hello: Hello): void {
    this.#sockets.known(inbound.origin);
    const peer = peerKey(hello.nodeId, hello.incarnation);
    if (hello.purpose === "bulk") return;
    this.counts.handshakes++;
    this.#door.accepted(peer, hello);
    // It dialled again, so its old connection is dead, whatever we see of it.
    for (const old of this.#inbounds) {
      if (old !== inbound && old.peer === peer && old.purpose === "peer") old.close();
    }
    this.#handlers?.peerSeen(peer);
    this.#links.introduced(hello, peer);
  }

  message(from: PeerKey, bytes: Uint8Array): void {
    this.counts.receivedMessages++;
    this.counts.receivedBytes += bytes.length;
    this.#handlers?.message(from, bytes);
  }

  beacon(from: PeerKey, bytes: Uint8Array): void {
    if (this.#handlers !== null) this.#beacon?.(from, bytes);
  }

  bulk(from: PeerKey, bytes: Uint8Array | null): void {
    if (bytes === null) {
      this.counts.failedBulks++;
      return;
    }
    this.counts.receivedBulks++;
    this.#handlers?.message(from, bytes);
  }

  readonly answer: Answering = (from, query) =>
    this.#handlers === null || this.#answering === null ? Promise.resolve(null) : this.#answering(from, query);

  ended(inbound: Inbound): void {
    this.#inbounds.delete(inbound);
    const { peer } = inbound;
    if (peer !== null && this.#closing === null && !this.hears(peer)) this.#links.inboundEnded(peer);
  }

  // ---- below ---------------------------------------------------------------------------------------

  #introduction(): Introduction {
    const { clusterId, nodeId, apiUrl, leaseEnabled } = this.#options;
    const incarnation = this.#self === null ? "0" : incarnationOf(this.#self);
    return { clusterId, nodeId, incarnation, address: this.address, apiUrl, leaseEnabled };
  }

  /** Where there are certificates. */
  get #security(): Security | null {
    return this.#channel instanceof Security ? this.#channel : null;
  }

  #isRemoved(peer: PeerKey | null): boolean {
    return peer !== null && this.#handlers?.isRemoved?.(peer) === true;
  }

  #acceptSecure(socket: TLSSocket, channel: Channel): void {
    const identified = channel.identify(socket);
    if (identified.ok) this.#accept(socket, identified.nodeId);
    else this.#accept(socket, null)?.refuse(identified);
  }

  #accept(socket: Socket, certified: string | null): Inbound | null {
    if (this.#closing !== null) {
      socket.destroy();
      return null;
    }
    const inbound = new Inbound(this, socket, certified);
    this.#inbounds.add(inbound);
    return inbound;
  }

  #hasRoomForBulk(peer: PeerKey): boolean {
    const bulks = [...this.#inbounds].filter((inbound) => inbound.purpose === "bulk");
    return bulks.length < BULK_ASSEMBLIES_MAX && !bulks.some((inbound) => inbound.peer === peer);
  }

  #tick(): void {
    const nowMs = performance.now();
    const isLate = nowMs - this.#tickAtMs > PING_INTERVAL_MS + OWN_STALL_MS;
    this.#tickAtMs = nowMs;
    for (const inbound of this.#inbounds) {
      // It was removed while it was connected: it hears so, and what it says from here on is not even read.
      if (this.#isRemoved(inbound.peer)) inbound.refuse({ reason: "removed", message: removedText(inbound.peer!) });
      else if (isLate) inbound.forgive(nowMs);
      else if (inbound.tick(nowMs) === "silent") this.counts.silentConnections++;
    }
    this.#links.tick(nowMs, isLate);
  }
}
