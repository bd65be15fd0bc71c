// The network between sites: requests with their answers, and streams, over the links of the world. A request may be late, lost, delivered
// twice or overtaken by a later one, and so may its answer; a stream is in order, and breaks. A cut link carries nothing: whoever waits
// gives up after a while, as the driver of production does.
//
// Invariants: whoever calls is answered or refused within CALL_GIVES_UP_MS; a stream ends at both ends, at each in its own time; what
// arrives is a copy of what was sent, so that two sites share no object; what is sent is shown to the tap before anybody changes it.

import { TenureError } from "../../core/kit/errors.ts";
import type { Random } from "../../core/kit/random.ts";
import type {
  Delivered,
  Delivery,
  Introduction,
  LineConsistency,
  LinkMessage,
  SiteAnswer,
  Sites,
} from "../../ports/mesh/sites.ts";
import type { Boot, World } from "../kernel/index.ts";
import { dial } from "./stream.ts";

/** As the driver's patience with a request. */
const CALL_GIVES_UP_MS = 5_000;
export interface Weather {
  readonly wayMs: readonly [number, number];
  readonly lossRate: number;
  readonly twiceRate: number;
  /** How often a message takes so many times longer. */
  readonly lateRate: number;
  readonly lateFactor: number;
}

export type Question =
  | { readonly kind: "identify" }
  | { readonly kind: "register"; readonly introduction: Introduction }
  | { readonly kind: "heartbeat"; readonly id: string }
  | { readonly kind: "deliver"; readonly delivery: Delivery }
  | { readonly kind: "consistency"; readonly line: string; readonly from: number; readonly to: number };

export interface Opening {
  readonly controller: string;
  readonly heads: readonly string[];
}

/** What one process of a site answers to the others. */
export interface Door {
  readonly isAlive: () => boolean;
  answer(question: Question): Promise<SiteAnswer<unknown>>;
  /** Until it ends the stream, or the signal aborts. `send` resolves when the other end has taken the message. */
  stream(
    opening: Opening,
    signal: AbortSignal,
    send: (message: LinkMessage) => Promise<void>,
  ): Promise<SiteAnswer<null>>;
}

/** What travels, between two nodes. */
export type Parcel =
  | { readonly kind: "question"; readonly question: Question }
  | { readonly kind: "answer"; readonly to: Question; readonly answer: SiteAnswer<unknown> }
  | { readonly kind: "opening"; readonly opening: Opening }
  | { readonly kind: "message"; readonly message: LinkMessage }
  /** Of a stream, by the end that was dialled. */
  | { readonly kind: "ended"; readonly answer: SiteAnswer<null> };

export interface Tap {
  /** In the sender's turn. */
  sent(from: string, to: string, parcel: Parcel): void;
  /** What arrives instead: a liar's. Null: nothing. */
  changed(from: string, to: string, parcel: Parcel): Parcel | null;
  /** One page more or fewer is under way. */
  underWay(from: string, to: string, by: 1 | -1): void;
  /** A message met this weather. */
  met(what: "cut" | "lost" | "twice" | "late" | "overtaken"): void;
}

/** How a parcel is carried. */
export interface Carriage {
  readonly from: string;
  readonly to: string;
  readonly parcel: Parcel;
  /** As over one connection: nothing is lost, doubled or overtaken. */
  readonly isOrdered: boolean;
  /** Whether the process is there for which it is; undefined: for whoever listens. */
  readonly isThere?: (() => boolean) | undefined;
  /** In that process. */
  readonly arrived: (parcel: Parcel) => void;
  /** Nobody is there. */
  readonly refused: () => void;
}

export class Transport {
  readonly #world: World;
  readonly #random: Random;
  readonly #doors = new Map<string, Door>();
  /** By way: when the last message that was sent there arrives. */
  readonly #latestMs = new Map<string, number>();
  readonly tap: Tap;
  /** Nodes from and to which nothing passes. */
  readonly cutOff = new Set<string>();
  weather: Weather;

  constructor(world: World, weather: Weather, tap: Tap) {
    this.#world = world;
    this.#random = world.random.fork("sites");
    this.tap = tap;
    this.weather = weather;
  }

  /** A process of this node answers from now on. */
  listen(node: string, door: Door): void {
    this.#doors.set(node, door);
  }

  /** As a process of this node reaches other sites. */
  sites(boot: Boot): Sites {
    const ask = async <T>(url: string, question: Question, signal: AbortSignal): Promise<SiteAnswer<T>> =>
      (await this.#ask(boot, nodeOf(url), question, signal)) as SiteAnswer<T>;
    return {
      identify: (url, signal) => ask<string>(url, { kind: "identify" }, signal),
      register: (url, introduction, signal) => ask(url, { kind: "register", introduction }, signal),
      heartbeat: (url, id, signal) => ask(url, { kind: "heartbeat", id }, signal),
      deliver: (url, delivery, signal) => ask<Delivered>(url, { kind: "deliver", delivery }, signal),
      consistency: (url, asked, signal) => ask<LineConsistency>(url, { kind: "consistency", ...asked }, signal),
      stream: (url, opening, signal, receive) => dial(this, boot, { to: nodeOf(url), opening, signal, receive }),
      close: () => undefined,
    };
  }

  carry(carriage: Carriage): void {
    const { from, to, parcel, isOrdered } = carriage;
    this.tap.sent(from, to, parcel);
    const changed = this.tap.changed(from, to, JSON.parse(JSON.stringify(parcel)) as Parcel);
    if (changed === null) return;
    const [lossRate, twiceRate] = isOrdered ? [0, 0] : [this.weather.lossRate, this.weather.twiceRate];
    if (this.#random.chance(lossRate)) return this.tap.met("lost");
    this.#send(carriage, changed);
    if (!this.#random.chance(twiceRate)) return;
    this.tap.met("twice");
    this.#send(carriage, changed);
  }

  /** Undefined: nobody listens. */
  door(node: string): Door | undefined {
    const door = this.#doors.get(node);
    return door?.isAlive() === true ? door : undefined;
  }

  isOpen(from: string, to: string): boolean {
    return this.#world.network.link(from, to).open && !this.#isCutOff(from, to);
  }

  #isCutOff(from: string, to: string): boolean {
    return this.cutOff.has(from) || this.cutOff.has(to);
  }

  /** In that process, once it is not paused, if it still lives. */
  at(node: string, isAlive: () => boolean, fire: () => void): void {
    if (!isAlive()) return;
    this.#world.call(node, () => {
      if (isAlive()) fire();
    });
  }

  /** Outside of every process. */
  after(node: string, afterMs: number, fire: () => void): void {
    const { scheduler } = this.#world;
    scheduler.schedule(scheduler.nowMs + afterMs, scheduler.owner(`sites/${node}`), fire);
  }

  report(node: string, error: unknown): void {
    this.#world.report(node, error);
  }

  #ask(boot: Boot, to: string, question: Question, signal: AbortSignal): Promise<SiteAnswer<unknown>> {
    const { node, isAlive } = boot;
    const hasPages = question.kind === "deliver" && (question.delivery.pages?.length ?? 0) > 0;
    let isOver = false;
    const over = (end: () => void): void => {
      if (isOver) return;
      isOver = true;
      if (hasPages) this.tap.underWay(node, to, -1);
      this.at(node, isAlive, end);
    };
    if (hasPages) this.tap.underWay(node, to, 1);
    return new Promise((resolve, reject) => {
      const failed = (why: string): void => over(() => reject(unreachable(to, why)));
      if (signal.aborted) return failed("given up");
      signal.addEventListener("abort", () => failed("given up"), { once: true });
      this.after(node, CALL_GIVES_UP_MS, () => failed("no answer"));
      const refused = (): void => this.after(to, this.#wayMs(), () => failed("nobody listens"));
      const parcel: Parcel = { kind: "question", question };
      const arrived = (asked: Parcel): void => {
        if (asked.kind === "question") this.#answer(to, asked.question, boot, (answer) => over(() => resolve(answer)));
      };
      this.carry({ from: node, to, parcel, isOrdered: false, arrived, refused });
    });
  }

  #answer(node: string, question: Question, asker: Boot, answered: (answer: SiteAnswer<unknown>) => void): void {
    const door = this.door(node);
    if (door === undefined) return;
    door.answer(question).then(
      (answer) => {
        if (!door.isAlive()) return;
        const parcel: Parcel = { kind: "answer", to: question, answer };
        const arrived = (said: Parcel): void => {
          if (said.kind === "answer") answered(said.answer);
        };
        const back = { from: node, to: asker.node, isThere: asker.isAlive, isOrdered: false };
        this.carry({ ...back, parcel, arrived, refused: () => undefined });
      },
      (error: unknown) => {
        if (door.isAlive()) this.report(node, error);
      },
    );
  }

  #send({ from, to, isOrdered, isThere, arrived, refused }: Carriage, parcel: Parcel): void {
    const { scheduler, network } = this.#world;
    const way = `${from}>${to}`;
    const isLate = this.#random.chance(this.weather.lateRate);
    if (isLate) this.tap.met("late");
    const latestMs = this.#latestMs.get(way) ?? 0;
    let atMs = scheduler.nowMs + this.#wayMs() * (isLate ? this.weather.lateFactor : 1);
    if (isOrdered) atMs = Math.max(atMs, latestMs);
    else if (atMs < latestMs) this.tap.met("overtaken");
    this.#latestMs.set(way, Math.max(latestMs, atMs));
    scheduler.schedule(atMs, scheduler.owner(`sites/${from}`), () => {
      const link = network.link(from, to);
      if (this.#isCutOff(from, to)) return;
      if (!link.open) {
        link.watch.cut?.();
        return this.tap.met("cut");
      }
      scheduler.trace(parcel.kind, from, to);
      const lives = isThere ?? this.#doors.get(to)?.isAlive;
      if (lives?.() === true) this.at(to, lives, () => arrived(parcel));
      else refused();
    });
  }

  #wayMs(): number {
    return this.#random.between(...this.weather.wayMs);
  }
}

export function unreachable(node: string, why: string): TenureError {
  return new TenureError("BACKEND_UNAVAILABLE", `${node}: ${why}`);
}

/** `http://a-n1`. */
function nodeOf(url: string): string {
  return url.replace("http://", "");
}
