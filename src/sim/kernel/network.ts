// The network between the nodes of a world: routes byte messages by node id over one `Link` per direction, and
// owns one `Connection` per pair.
// Invariants: bytes are copied once at the sender and never change under way; whatever is sent is counted exactly
// once for each copy as delivered, lost, cut, overflowed, reset, refused or expired, or is still under way; the
// receiver gets what arrives at its node id, also when it was meant for another disk of that node (it must refuse).

import { assert } from "../../core/kit/assert.ts";
import { nodeIdOf, type PeerKey } from "../../core/kit/ids.ts";
import type { Random } from "../../core/kit/random.ts";
import { Connection, type End, type Redial } from "./connection.ts";
import { damage, LAN, Link, type LinkModel } from "./link.ts";
import type { Life } from "./process.ts";
import type { Scheduler } from "./scheduler.ts";
import { SimWire } from "./wire.ts";

export interface NetworkHooks {
  onSend?: ((from: PeerKey, to: PeerKey, bytes: Uint8Array) => void) | undefined;
  /** What `corruptRate` does to a message; by default it is truncated or gets a flipped bit. */
  corrupt?: ((bytes: Uint8Array, random: Random) => Uint8Array) | undefined;
}

interface Node extends End {
  readonly links: Map<string, Link>;
  readonly connections: Map<string, Connection>;
}

export class SimNetwork {
  readonly counts = {
    sent: 0,
    delivered: 0,
    lost: 0,
    duplicated: 0,
    reordered: 0,
    corrupted: 0,
    cut: 0,
    overflowed: 0,
    reset: 0,
    refused: 0,
    expired: 0,
    acrossLives: 0,
    unroutable: 0,
    injected: 0,
    peerSeen: 0,
    peerGone: 0,
    resets: 0,
  };
  hooks: NetworkHooks = {};
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #nodes = new Map<string, Node>();
  #model: LinkModel;

  constructor(scheduler: Scheduler, random: Random, model: Partial<LinkModel> = {}) {
    this.#scheduler = scheduler;
    this.#random = random;
    this.#model = { ...LAN, ...model };
  }

  get names(): string[] {
    return [...this.#nodes.keys()].toSorted();
  }

  addNode(name: string): void {
    assert(!this.#nodes.has(name), "a node is added once", () => name);
    const node: Node = { name, wire: undefined, links: new Map(), connections: new Map() };
    for (const other of this.#nodes.values()) {
      if (name < other.name) this.#join(node, other);
      else this.#join(other, node);
    }
    this.#nodes.set(name, node);
  }

  /** The Wire port of one life. */
  wire(life: Life, self: PeerKey): SimWire {
    assert(nodeIdOf(self) === life.process.name, "a wire speaks for its own node", () => self);
    return new SimWire(this, life, self);
  }

  link(from: string, to: string): Link {
    const link = this.#nodes.get(from)?.links.get(to);
    assert(link !== undefined, "a link joins two nodes", () => `${from} > ${to}`);
    return link;
  }

  connection(a: string, b: string): Connection {
    const connection = this.#nodes.get(a)?.connections.get(b);
    assert(connection !== undefined, "a connection joins two nodes", () => `${a} = ${b}`);
    return connection;
  }

  /** Both directions of one pair, or all links there are. */
  links(a?: string, b?: string): Link[] {
    if (a !== undefined && b !== undefined) return [this.link(a, b), this.link(b, a)];
    return this.names.flatMap((name) => byName(this.#nodes.get(name)?.links ?? new Map<string, Link>()));
  }

  /** The world's own values for what `change` changes. */
  normal(change: Partial<LinkModel>): Partial<LinkModel> {
    return Object.fromEntries(Object.keys(change).map((key) => [key, this.#model[key as keyof LinkModel]]));
  }

  /** From now on the world's own model is another one, for every link, and also where a fault ends later. */
  becomes(change: Partial<LinkModel>): void {
    this.#model = { ...this.#model, ...change };
    for (const link of this.links()) link.model = { ...link.model, ...change };
  }

  /** The world's own model again, and nobody watches. */
  calm(link: Link): void {
    link.model = this.#model;
    link.watch = {};
  }

  cutOneWay(from: string, to: string): boolean {
    const link = this.link(from, to);
    const wasOpen = link.open;
    link.cut = true;
    this.#mark("cut", link);
    return wasOpen;
  }

  openOneWay(from: string, to: string): void {
    const link = this.link(from, to);
    if (!link.cut) return;
    link.cut = false;
    this.#mark("heal", link);
    this.connection(from, to).healed();
  }

  /** Opens both directions of a pair, ends flapping; without arguments, of all pairs. */
  heal(a?: string, b?: string): boolean {
    let changed = false;
    for (const link of this.links(a, b)) {
      link.flapper = undefined;
      if (link.open) continue;
      link.cut = false;
      link.flapped = false;
      changed = true;
      this.#mark("heal", link);
      this.connection(link.from, link.to).healed();
    }
    return changed;
  }

  /** Cuts between nodes of different groups. A node in no group reaches everybody: it is a bridge. */
  partition(groups: readonly (readonly string[])[]): boolean {
    return between(groups).filter(([from, to]) => this.cutOneWay(from, to)).length > 0;
  }

  /** One phase of flapping; who toggles, and when, is the fault's business. */
  setFlapped(a: string, b: string, flapped: boolean): void {
    for (const link of this.links(a, b)) link.flapped = flapped;
    this.#mark(flapped ? "flap-down" : "flap-up", this.link(a, b));
    if (!flapped) this.connection(a, b).healed();
  }

  /** Resets the connection of two living processes; what is under way is lost. Refused: by `b`'s full listener. */
  reset(a: string, b: string, redial: Redial): boolean {
    const connection = this.connection(a, b);
    const happened = connection.reset(redial, a);
    if (happened) this.#mark(`reset-${redial}`, this.link(a, b));
    return happened;
  }

  /** Somebody shakes hands with `to` as this peer, and then sends all of this at once; `act` is called on its thread. */
  intrude(to: string, peer: PeerKey, act: (send: (bytes: Uint8Array) => void) => void): boolean {
    const wire = this.#nodes.get(to)?.wire;
    if (wire === undefined) return false;
    wire.life.schedule(this.#scheduler.nowMs, () => {
      wire.handlers?.peerSeen(peer);
      act((bytes) => {
        this.counts.injected++;
        wire.handlers?.message(peer, new Uint8Array(bytes));
      });
    });
    return true;
  }

  /** A message that nobody sent. False when nobody listens at `to`. */
  inject(to: string, from: PeerKey, bytes: Uint8Array, onDelivered?: () => void): boolean {
    const wire = this.#nodes.get(to)?.wire;
    if (wire === undefined) return false;
    this.counts.injected++;
    const copy = new Uint8Array(bytes);
    wire.life.schedule(this.#scheduler.nowMs, () => {
      onDelivered?.();
      wire.handlers?.message(from, copy);
    });
    return true;
  }

  // What the wires and the world tell the network.

  listening(wire: SimWire): void {
    const node = this.#node(wire.life.process.name);
    node.wire = wire;
    for (const connection of byName(node.connections)) connection.dial();
  }

  ended(name: string, silent: boolean): void {
    const node = this.#node(name);
    if (node.wire === undefined) return;
    node.wire = undefined;
    for (const connection of byName(node.connections)) connection.ended(node, silent);
  }

  /** Handshakes that waited for a frozen process. */
  resumed(name: string): void {
    for (const connection of byName(this.#node(name).connections)) if (!connection.established) connection.dial();
  }

  send(wire: SimWire, to: PeerKey, bytes: Uint8Array): void {
    const target = this.#nodes.get(nodeIdOf(to));
    const link = this.#node(wire.life.process.name).links.get(nodeIdOf(to));
    this.counts.sent++;
    this.#scheduler.traceBytes(bytes);
    this.hooks.onSend?.(wire.self, to, bytes);
    if (target === undefined || link === undefined) {
      this.counts.unroutable++;
      return;
    }
    if (!link.open) {
      this.counts.cut++;
      link.watch.cut?.();
      return;
    }
    if (link.queuedBytes + bytes.length > link.model.queueBytesMax) {
      this.counts.overflowed++;
      return;
    }
    if (link.model.lossRate > 0 && link.random.chance(link.model.lossRate)) {
      this.counts.lost++;
      link.watch.lost?.();
      return;
    }
    const copy = this.#carried(link, bytes);
    this.#carry(wire.self, target, link, copy);
    if (link.model.duplicateRate > 0 && link.random.chance(link.model.duplicateRate)) {
      this.counts.duplicated++;
      link.watch.duplicated?.();
      this.#carry(wire.self, target, link, copy);
    }
  }

  #carried(link: Link, bytes: Uint8Array): Uint8Array {
    link.watch.carried?.();
    const copy = new Uint8Array(bytes);
    if (link.model.corruptRate === 0 || !link.random.chance(link.model.corruptRate)) return copy;
    this.counts.corrupted++;
    return (this.hooks.corrupt ?? damage)(copy, link.random);
  }

  #carry(from: PeerKey, target: Node, link: Link, bytes: Uint8Array): void {
    const { atMs, overtakes } = link.arrival(this.#scheduler.nowMs, bytes.length);
    if (overtakes) this.counts.reordered++;
    link.queuedBytes += bytes.length;
    const connection = target.connections.get(link.from) as Connection;
    const { generation } = connection;
    const life = target.wire?.life;
    this.#scheduler.schedule(atMs, link.owner, () => {
      link.queuedBytes -= bytes.length;
      if (generation === connection.generation) this.#arrive(from, target, link, bytes, life);
      else this.counts.reset++;
    });
  }

  #arrive(from: PeerKey, target: Node, link: Link, bytes: Uint8Array, lifeAtSend: Life | undefined): void {
    const wire = target.wire;
    if (!link.open) {
      this.counts.cut++;
      link.watch.cut?.();
    } else if (wire === undefined) {
      this.counts.refused++;
    } else if (wire.life !== lifeAtSend && !link.random.chance(link.model.acrossLivesRate)) {
      this.counts.expired++;
    } else {
      if (wire.life !== lifeAtSend) this.counts.acrossLives++;
      this.counts.delivered++;
      wire.life.deliver(() => wire.handlers?.message(from, bytes));
    }
  }

  /** `first` is the smaller name, so that streams and owners do not depend on who was added first. */
  #join(first: Node, second: Node): void {
    const there = this.#newLink(first.name, second.name);
    const back = this.#newLink(second.name, first.name);
    const random = this.#random.fork(`connection/${first.name}=${second.name}`);
    const connection = new Connection([first, second], [there, back], this.#scheduler, random, this.counts);
    first.links.set(second.name, there);
    second.links.set(first.name, back);
    first.connections.set(second.name, connection);
    second.connections.set(first.name, connection);
  }

  #newLink(from: string, to: string): Link {
    const name = `link/${from}>${to}`;
    return new Link(from, to, this.#scheduler.owner(name), this.#random.fork(name), this.#model);
  }

  #node(name: string): Node {
    const node = this.#nodes.get(name);
    assert(node !== undefined, "a node is known to the network", () => name);
    return node;
  }

  #mark(what: string, link: Link): void {
    this.#scheduler.trace(what, link.from, link.to);
    this.#scheduler.narrate("net", () => `${what} ${link.from} > ${link.to}`);
  }
}

/** Each way between nodes of two groups. */
export function between(groups: readonly (readonly string[])[]): [string, string][] {
  return groups.flatMap((group) =>
    groups
      .filter((other) => other !== group)
      .flatMap((other) => group.flatMap((from) => other.map((to): [string, string] => [from, to]))),
  );
}

/** Never in the order in which nodes were added: what is done in a loop may reach the trace. */
function byName<T>(map: ReadonlyMap<string, T>): T[] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, value]) => value);
}
