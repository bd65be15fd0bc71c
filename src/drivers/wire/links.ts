// Everybody this node dials: the configuration's seeds, and those that handshakes told of.
//
// Invariants:
// - A node that the configuration names is dialled there and nowhere else, with one exception: while another disk
//   answers under that id, the disk that shook hands from elsewhere is dialled too (design D5: the engine decides).
// - At most LEARNED_MAX addresses are learned; the oldest that does not stand makes room.

import { nodeIdOf, type PeerKey } from "../../core/kit/ids.ts";
import type { PeerLink } from "../../ports/peers/peers.ts";
import { type Address, formatAddress, isLoopback, parseAddress } from "./address.ts";
import type { Hello } from "./handshake/hello.ts";
import { LEARNED_MAX, PING_INTERVAL_MS } from "./limits.ts";
import { Link } from "./link.ts";
import type { LinkHost } from "./link-host.ts";

export class Links {
  readonly #host: LinkHost;
  readonly #plain: boolean;
  readonly #links = new Map<string, Link>();
  #isDialling = false;

  constructor(host: LinkHost, seeds: ReadonlyMap<string, Address>, plain: boolean) {
    this.#host = host;
    this.#plain = plain;
    for (const [nodeId, address] of seeds) {
      this.#links.set(keyOf(nodeId, address), new Link(host, nodeId, address, true));
    }
  }

  dialAll(): void {
    this.#isDialling = true;
    for (const link of this.#links.values()) link.dialNow();
  }

  /** One that dialled us: it lives, so whoever of its addresses waits is dialled now. */
  introduced(hello: Hello, peer: PeerKey): void {
    const known = this.#of(hello.nodeId);
    for (const link of known) {
      if (link.peer === peer) link.apiUrl = hello.apiUrl;
      link.dialNow();
    }
    if (known.some((link) => link.isSeed) && !known.some((link) => isOtherDisk(link, peer))) return;
    // It says itself where it is: what was learned of this disk before, or told by others, is no longer true.
    for (const link of known) {
      const isStale = link.peer === peer || (link.peer === null && !link.isConnected);
      if (!link.isSeed && isStale && formatAddress(link.address) !== hello.address) this.forget(link);
    }
    this.#learn(hello.nodeId, hello.address);
  }

  /** What an acknowledgement told of a third node. */
  tell(nodeId: string, address: string): void {
    if (nodeId !== this.#host.hello("peer").nodeId && this.#of(nodeId).length === 0) this.#learn(nodeId, address);
  }

  /** Whom we are connected to, for others. */
  told(): (readonly [string, string])[] {
    return [...this.#links.values()]
      .filter((link) => link.isConnected)
      .map((link) => [link.nodeId, link.advertised] as const);
  }

  inboundEnded(peer: PeerKey): void {
    for (const link of this.#of(nodeIdOf(peer))) link.inboundEnded(peer);
  }

  tick(nowMs: number, isLate: boolean): void {
    for (const link of this.#links.values()) {
      if (isLate) link.forgive(nowMs);
      else link.tick(nowMs);
    }
    // One after the other: most of them stand at any moment, whatever comes of it.
    const links = [...this.#links.values()];
    if (!isLate && !links.some((link) => link.isRenewing)) links.find((link) => link.isOld(nowMs))?.renew();
  }

  /** One for each node id: the link that stands, else the one that was made last. */
  list(): readonly PeerLink[] {
    const best = new Map<string, Link>();
    for (const link of this.#links.values()) {
      const present = best.get(link.nodeId);
      if (present === undefined || !present.isConnected) best.set(link.nodeId, link);
    }
    return [...best.values()]
      .toSorted((a, b) => (a.nodeId < b.nodeId ? -1 : 1))
      .map((link) => ({
        nodeId: link.nodeId,
        peer: link.peer,
        address: formatAddress(link.address),
        apiUrl: link.apiUrl,
        protocol: link.protocol,
        isConnected: link.isConnected,
        trouble: link.trouble,
        refusal: link.refusal,
      }));
  }

  forget(link: Link): void {
    link.close();
    this.#links.delete(keyOf(link.nodeId, link.address));
  }

  close(): void {
    for (const link of this.#links.values()) link.close();
    this.#links.clear();
  }

  #learn(nodeId: string, text: string): void {
    const address = parseAddress(text);
    if (address === undefined || this.#links.has(keyOf(nodeId, address))) return;
    if (this.#plain && !isLoopback(address.host)) {
      const message = `its address ${text} is beyond loopback, and this node has no TLS; it is not dialled`;
      this.#host.refusals.refuse(nodeId, "plain-beyond-loopback", message);
      return;
    }
    if (!this.#makeRoom()) return;
    const link = new Link(this.#host, nodeId, address, false);
    this.#links.set(keyOf(nodeId, address), link);
    if (this.#isDialling) link.dialNow();
  }

  #makeRoom(): boolean {
    const learned = [...this.#links.values()].filter((link) => !link.isSeed);
    if (learned.length < LEARNED_MAX) return true;
    const oldest = learned.find((link) => !link.isConnected);
    if (oldest === undefined) return false;
    this.forget(oldest);
    return true;
  }

  #of(nodeId: string): Link[] {
    return [...this.#links.values()].filter((link) => link.nodeId === nodeId);
  }
}

/** Proved a moment ago, not merely remembered: a cut connection stands for a while too. */
function isOtherDisk(link: Link, peer: PeerKey): boolean {
  return link.peer !== peer && link.isFresh(2 * PING_INTERVAL_MS);
}

function keyOf(nodeId: string, address: Address): string {
  return `${nodeId} ${formatAddress(address)}`;
}
