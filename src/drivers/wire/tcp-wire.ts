// The peers of one node over TCP: it listens, dials everybody it knows of, and carries messages between them unparsed.
// Each direction has a connection of its own: what this node says travels on the one that it dialled (link.ts), what it
// hears on the one that the other dialled (inbound.ts). Without TLS nothing but loopback is listened on or dialled.

import { createServer, type Server } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { TenureError } from "../../core/kit/errors.ts";
import type { PeerKey } from "../../core/kit/ids.ts";
import type { Random } from "../../core/kit/random.ts";
import type { Logger } from "../../ports/logger.ts";
import type { PeerQueries } from "../../ports/peers/queries.ts";
import type { Peers } from "../../ports/peers/peers.ts";
import type { Wire } from "../../ports/peers/wire.ts";
import { type Address, formatAddress, isWildcard, requireAddress, requireLoopback } from "./address.ts";
import { Hub } from "./hub.ts";
import { CONNECTIONS_MAX } from "./limits.ts";
import { Secret } from "./handshake/secret.ts";
import { type Channel, type PeerTls, Security } from "./handshake/security.ts";
import type { WireStats } from "./stats.ts";

export interface WireOptions {
  readonly listen: Address;
  /** What others dial, "host:port"; null: where it listens. */
  readonly advertise: string | null;
  readonly apiUrl: string | null;
  readonly clusterId: string;
  readonly nodeId: string;
  /** By node id, "host:port"; this node's own entry is ignored. */
  readonly seeds: Readonly<Record<string, string>>;
  /** Null: on loopback only, and with the secret instead of certificates. */
  readonly tls: PeerTls | null;
  /**
   * What all nodes of the cluster know and nobody else, for connections without certificates. Only tests of the wire leave it
   * out: then it is plain TCP, and whoever reaches the port is let in.
   */
  readonly secret?: Uint8Array | undefined;
  readonly leaseEnabled: boolean;
  /** How old a connection that we dialled may become. */
  readonly connectionAgeMs?: number | undefined;
  readonly random: Random;
  readonly logger: Logger;
}

export interface TcpWire extends Peers, PeerQueries {
  readonly port: number;
  /** What others are told to dial, "host:port". */
  readonly address: string;
  /** Called once, when the disk has told which peer this is. Nobody is dialled or accepted before that wire's `start`. */
  connect(self: PeerKey): Wire;
  stats(): WireStats;
  /** New connections use it; those that stand go on until they are old. Throws CERTIFICATE_INVALID, and then nothing has changed. */
  reload(tls: PeerTls): void;
  /** Resolves when no socket is open any more. Safe to call twice. */
  close(): Promise<void>;
}

export async function listenWire(options: WireOptions): Promise<TcpWire> {
  const channel = channelOf(options);
  const seeds = seedAddresses(options.seeds, options.nodeId);
  if (options.advertise !== null) requireAddress(options.advertise, "the advertised peer address");
  else if (isWildcard(options.listen.host)) {
    throw new TenureError(
      "CONFIG_INVALID",
      `peers can't dial ${options.listen.host}, so they must be told another address: set peer.advertise to host:port as others reach this node.`,
    );
  }
  if (options.tls === null) requireLoopback(hostsOf(options, seeds));
  const server = channel === null ? createServer() : createTlsServer(channel.listenOptions());
  server.maxConnections = CONNECTIONS_MAX;
  await listening(server, options.listen);
  return new Hub(options, seeds, channel, server);
}

export function channelOf({ tls, secret, nodeId }: Pick<WireOptions, "tls" | "secret" | "nodeId">): Channel | null {
  if (tls !== null) return new Security(tls, nodeId);
  return secret === undefined ? null : new Secret(secret);
}

function seedAddresses(seeds: WireOptions["seeds"], nodeId: string): ReadonlyMap<string, Address> {
  const others = Object.entries(seeds).filter(([id]) => id !== nodeId);
  return new Map(others.map(([id, text]) => [id, requireAddress(text, `the address of peer ${id}`)]));
}

function hostsOf(options: WireOptions, seeds: ReadonlyMap<string, Address>): (readonly [string, string])[] {
  const hosts: (readonly [string, string])[] = [["this node listens on", options.listen.host]];
  if (options.advertise !== null) {
    hosts.push(["this node is advertised as", requireAddress(options.advertise, "the advertised peer address").host]);
  }
  for (const [id, { host }] of seeds) hosts.push([`peer ${id} is at`, host]);
  return hosts;
}

function listening(server: Server, { host, port }: Address): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const why = error.code === "EADDRINUSE" ? "another process listens there" : error.message;
      const text = `this node can't listen for peers on ${formatAddress({ host, port })}: ${why}. Free it, or change peer.listen.`;
      reject(new TenureError("CONFIG_INVALID", text, { cause: error }));
    });
    server.listen({ host, port }, () => {
      server.removeAllListeners("error");
      resolve();
    });
  });
}
