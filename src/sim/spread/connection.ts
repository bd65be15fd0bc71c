// The connection of two sites: whoever dials pushes pages by requests, which are answered; the other one by a stream, which is not. Messages
// of one direction arrive in their order. What is under way when a connection ends is lost.
// States: open → (black: nothing arrives any more, and nobody knows) → closed.

import type { Random } from "../../core/kit/random.ts";
import type { LineId } from "../../core/mesh/model.ts";
import type { Head, SentOutcome } from "../../core/mesh/spread/index.ts";
import type { World } from "../kernel/index.ts";

/** As it was cut by the author. */
export interface SimPage {
  readonly after: number;
  readonly through: number;
  /** Sites that it passed since its author. */
  readonly hops: number;
}

/** Consecutive pages. */
export interface SentPages {
  readonly kind: "pages";
  readonly line: LineId;
  readonly after: number;
  readonly through: number;
  readonly pages: readonly SimPage[];
  readonly isGood: boolean;
}

export type Message =
  | SentPages
  | { readonly kind: "heads"; readonly heads: readonly Head[] }
  | { readonly kind: "answer"; readonly line: LineId; readonly outcome: SentOutcome }
  | { readonly kind: "graft"; readonly line: LineId; readonly after: number }
  | { readonly kind: "prune"; readonly line: LineId };

/** One end of a connection, as the site at that end has it. */
export interface End {
  readonly id: string;
  readonly peer: string;
  readonly isDialler: boolean;
  /** What the other side was notified of: heads are sent when they change. */
  readonly reported: Map<LineId, string>;
  send(message: Message): void;
}

export interface Receiver {
  readonly name: string;
  connected(end: End): void;
  disconnected(end: End): void;
  receive(end: End, message: Message): void;
}

export interface Pace {
  readonly latencyMinMs: number;
  readonly latencyMaxMs: number;
}

export class Connection {
  isOpen = true;
  isBlack = false;
  readonly #world: World;
  readonly #sides: readonly { readonly site: Receiver; readonly end: End }[];
  readonly #onLost: (message: Message) => void;

  constructor(
    world: World,
    random: Random,
    id: string,
    [dialler, other]: readonly [Receiver, Receiver],
    pace: Pace,
    onLost: (message: Message) => void,
  ) {
    this.#world = world;
    const { scheduler } = world;
    this.#onLost = onLost;
    const latencyMs = random.between(pace.latencyMinMs, pace.latencyMaxMs);
    const endOf = (site: Receiver, peer: Receiver, isDialler: boolean) => {
      let lastMs = 0;
      const send = (message: Message): void => {
        lastMs = Math.max(lastMs, scheduler.nowMs + latencyMs * random.between(0.8, 1.2));
        scheduler.schedule(lastMs, scheduler.owner(peer.name), () => this.#arrive(peer, message));
      };
      return { site, end: { id, peer: peer.name, isDialler, reported: new Map<LineId, string>(), send } };
    };
    this.#sides = [endOf(dialler, other, true), endOf(other, dialler, false)];
    for (const { site, end } of this.#sides) site.connected(end);
  }

  close(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    for (const { site, end } of this.#sides) site.disconnected(end);
  }

  #arrive(to: Receiver, message: Message): void {
    if (!this.isOpen || this.isBlack) {
      this.#onLost(message);
      return;
    }
    const side = this.#sides.find(({ site }) => site === to)!;
    this.#world.scheduler.trace(message.kind);
    side.site.receive(side.end, message);
  }
}
