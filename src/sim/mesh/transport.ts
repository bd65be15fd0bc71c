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
} from "../../ports/sites.ts";
import type { Boot, World } from "../kernel/index.ts";

/** As the driver's patience with a request. */
const CALL_GIVES_UP_MS = 5_000;
/** A stream that carried nothing for so long is dead: heads come each second. */
const STREAM_GIVES_UP_MS = 4_000;

export interface Weather {
  readonly wayMs: readonly [number, number];
  readonly lossRate: number;
  readonly twiceRate: number;
  /** How often a message takes so many times longer. */
  readonly lateRate: number;
  readonly lateFactor: number;
}

export type Question =
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
  | { readonly kind: "message"; readonly message: LinkMessage };

export interface Tap {
  /** In the sender's turn. */
  sent(from: string, to: string, parcel: Parcel): void;
  /** What arrives instead: a liar's. Null: nothing. */
  changed(from: string, to: string, parcel: Parcel): Parcel | null;
  /** A message met this weather. */
  met(what: "cut" | "lost" | "twice" | "late" | "overtaken"): void;
}

export class Transport {
  readonly #world: World;
  readonly #random: Random;
  readonly #tap: Tap;
  readonly #doors = new Map<string, Door>();
  /** By way: when the last message that was sent there arrives. */
  readonly #latestMs = new Map<string, number>();
  weather: Weather;
  #calls = 0;

  constructor(world: World, weather: Weather, tap: Tap) {
    this.#world = world;
    this.#random = world.random.fork("sites");
    this.#tap = tap;
    this.weather = weather;
  }

  listen(node: string, door: Door): void {
    this.#doors.set(node, door);
  }

  /** As a process of this node reaches other sites. */
  sites(boot: Boot): Sites {
    const ask = async <T>(url: string, question: Question, signal: AbortSignal): Promise<SiteAnswer<T>> =>
      (await this.#ask(boot, nodeOf(url), question, signal)) as SiteAnswer<T>;
    return {
      register: (url, introduction, signal) => ask(url, { kind: "register", introduction }, signal),
      heartbeat: (url, id, signal) => ask(url, { kind: "heartbeat", id }, signal),
      deliver: (url, delivery, signal) => ask<Delivered>(url, { kind: "deliver", delivery }, signal),
      consistency: (url, asked, signal) => ask<LineConsistency>(url, { kind: "consistency", ...asked }, signal),
      stream: (url, opening, signal, receive) => new StreamEnd(this, boot, nodeOf(url), signal, receive).open(opening),
      close: () => undefined,
    };
  }

  /** Carries a parcel; `arrived` is called in the process that listens there, if it still is that one. */
  carry(from: string, to: string, parcel: Parcel, isOrdered: boolean, arrived: (parcel: Parcel) => void): void {
    this.#tap.sent(from, to, parcel);
    const copy = JSON.parse(JSON.stringify(parcel)) as Parcel;
    const changed = this.#tap.changed(from, to, copy);
    if (changed === null) return;
    this.#deliver(from, to, changed, isOrdered, arrived);
    if (isOrdered || !this.#random.chance(this.weather.twiceRate)) return;
    this.#tap.met("twice");
    this.#deliver(from, to, changed, isOrdered, arrived);
  }

  door(node: string): Door | undefined {
    const door = this.#doors.get(node);
    return door?.isAlive() === true ? door : undefined;
  }

  /** In that process, once it is not paused. */
  at(node: string, isAlive: () => boolean, fire: () => void): void {
    this.#world.call(node, () => {
      if (isAlive()) fire();
    });
  }

  after(node: string, afterMs: number, fire: () => void): void {
    const { scheduler } = this.#world;
    scheduler.schedule(scheduler.nowMs + afterMs, scheduler.owner(`sites/${node}`), fire);
  }

  report(node: string, error: unknown): void {
    this.#world.report(node, error);
  }

  #ask(boot: Boot, to: string, question: Question, signal: AbortSignal): Promise<SiteAnswer<unknown>> {
    const { node, isAlive } = boot;
    this.#calls++;
    return new Promise((resolve, reject) => {
      const failed = (why: string): void =>
        this.at(node, isAlive, () => reject(new TenureError("BACKEND_UNAVAILABLE", `${to}: ${why}`)));
      if (signal.aborted) return failed("given up");
      signal.addEventListener("abort", () => failed("given up"), { once: true });
      this.after(node, CALL_GIVES_UP_MS, () => failed("no answer"));
      this.carry(node, to, { kind: "question", question }, false, (asked) => {
        const door = this.door(to);
        if (door === undefined) return this.after(node, this.#wayMs(), () => failed("nobody listens"));
        if (asked.kind !== "question") return;
        door.answer(asked.question).then(
          (answer) => {
            if (!door.isAlive()) return;
            this.carry(to, node, { kind: "answer", to: asked.question, answer }, false, (back) => {
              if (back.kind === "answer") this.at(node, isAlive, () => resolve(back.answer));
            });
          },
          (error: unknown) => {
            if (door.isAlive()) this.report(to, error);
          },
        );
      });
    });
  }

  #deliver(from: string, to: string, parcel: Parcel, isOrdered: boolean, arrived: (parcel: Parcel) => void): void {
    const { scheduler, network } = this.#world;
    const way = `${from}>${to}`;
    // A stream's bytes are sent again until they arrive, or the stream breaks.
    if (!isOrdered && this.#random.chance(this.weather.lossRate)) return this.#tap.met("lost");
    const isLate = this.#random.chance(this.weather.lateRate);
    if (isLate) this.#tap.met("late");
    const latestMs = this.#latestMs.get(way) ?? 0;
    let atMs = scheduler.nowMs + this.#wayMs() * (isLate ? this.weather.lateFactor : 1);
    if (isOrdered) atMs = Math.max(atMs, latestMs);
    else if (atMs < latestMs) this.#tap.met("overtaken");
    this.#latestMs.set(way, Math.max(latestMs, atMs));
    scheduler.schedule(atMs, scheduler.owner(`sites/${from}`), () => {
      const link = network.link(from, to);
      if (!link.open) {
        link.watch.cut?.();
        return this.#tap.met("cut");
      }
      scheduler.trace(parcel.kind, from, to);
      const door = this.door(to);
      this.at(
        to,
        () => door === undefined || door.isAlive(),
        () => arrived(parcel),
      );
      // A machine that is off sends nothing back; where only the process is gone, its kernel refuses.
      if (door === undefined && this.#world.node(to).process.life === undefined) arrived(parcel);
    });
  }

  #wayMs(): number {
    return this.#random.between(...this.weather.wayMs);
  }
}

/** The end of a stream that was dialled; the other end is the loop of `open`. */
class StreamEnd {
  readonly #transport: Transport;
  readonly #boot: Boot;
  readonly #to: string;
  readonly #signal: AbortSignal;
  readonly #receive: (message: LinkMessage) => Promise<void>;
  readonly #there = new AbortController();
  #heard = 0;
  #taken = 0;
  #isOver = false;

  constructor(
    transport: Transport,
    boot: Boot,
    to: string,
    signal: AbortSignal,
    receive: (message: LinkMessage) => Promise<void>,
  ) {
    this.#transport = transport;
    this.#boot = boot;
    this.#to = to;
    this.#signal = signal;
    this.#receive = receive;
  }

  open(opening: Opening): Promise<SiteAnswer<null>> {
    const { node, isAlive } = this.#boot;
    const transport = this.#transport;
    return new Promise((resolve, reject) => {
      const over = (end: () => void): void => {
        if (this.#isOver) return;
        this.#isOver = true;
        transport.at(node, isAlive, end);
      };
      const broken = (why: string): void =>
        over(() => reject(new TenureError("BACKEND_UNAVAILABLE", `${this.#to}: ${why}`)));
      if (this.#signal.aborted) return broken("given up");
      this.#signal.addEventListener("abort", () => broken("given up"), { once: true });
      this.#watch(
        node,
        () => this.#heard,
        () => broken("nothing was heard"),
      );
      transport.carry(node, this.#to, { kind: "opening", opening }, false, (parcel) => {
        const door = transport.door(this.#to);
        if (door === undefined) return transport.after(node, 1, () => broken("nobody listens"));
        if (parcel.kind !== "opening") return;
        this.#serve(door, parcel.opening, (answer) => over(() => resolve(answer)));
      });
    });
  }

  #serve(door: Door, opening: Opening, ended: (answer: SiteAnswer<null>) => void): void {
    const transport = this.#transport;
    const { node } = this.#boot;
    const abort = (): void => transport.at(this.#to, door.isAlive, () => this.#there.abort());
    this.#watch(this.#to, () => this.#taken, abort);
    this.#heard++;
    door
      .stream(opening, this.#there.signal, (message) => this.#send(door, message))
      .then(
        (answer) => {
          if (!door.isAlive()) return;
          transport.carry(this.#to, node, { kind: "answer", to: { kind: "heartbeat", id: "" }, answer }, true, () =>
            ended(answer),
          );
        },
        (error: unknown) => {
          if (door.isAlive()) transport.report(this.#to, error);
        },
      );
  }

  /** One message is under way: the promise resolves when it was taken there. */
  #send(door: Door, message: LinkMessage): Promise<void> {
    const transport = this.#transport;
    const { node, isAlive } = this.#boot;
    return new Promise((resolve, reject) => {
      const refused = (): void => reject(new TenureError("BACKEND_UNAVAILABLE", `${node}: the stream is over`));
      if (this.#there.signal.aborted) return refused();
      this.#there.signal.addEventListener("abort", refused, { once: true });
      transport.carry(this.#to, node, { kind: "message", message }, true, (parcel) => {
        if (this.#isOver || !isAlive() || parcel.kind !== "message") return;
        this.#heard++;
        this.#receive(parcel.message).then(
          () => {
            if (!isAlive()) return;
            transport.after(node, 1, () => {
              this.#taken++;
              transport.at(this.#to, door.isAlive, resolve);
            });
          },
          (error: unknown) => {
            if (isAlive()) transport.report(node, error);
          },
        );
      });
    });
  }

  /** Nothing has moved for a while: whoever is at this end gives up. */
  #watch(node: string, moved: () => number, dead: () => void): void {
    const before = moved();
    this.#transport.after(node, STREAM_GIVES_UP_MS, () => {
      if (this.#isOver || moved() === before) return dead();
      this.#watch(node, moved, dead);
    });
  }
}

/** `http://a-n1`. */
function nodeOf(url: string): string {
  return url.replace("http://", "");
}
