// The network between nodes, for all that is asked by HTTPS in production: requests with their answers, over the links of the world. A request may
// be late by minutes, lost, delivered twice or overtaken, and so may its answer; a cut link carries nothing. What was sent to islands is kept, and some
// of it is delivered once more long after.
//
// Invariants: what arrives is a copy of what was sent; a process that died neither answers nor hears an answer; whoever waits is told `null` after its
// time, by its own clock.

import { ERRORS, TenureError } from "../../core/kit/errors.ts";
import type { ErrorCode } from "../../core/kit/errors.ts";
import type { Random } from "../../core/kit/random.ts";
import type { Boot, World } from "../kernel/index.ts";
import { type TxnProbeCounts, reached } from "./probes.ts";
import { TXN_SIM_LATE_MS } from "./limits.ts";

export interface Weather {
  /** How often a message is late, and by how much. */
  readonly lateRate: number;
  readonly lateMs: readonly [number, number];
}

/** What is asked of a node; its kind says by whom it is answered. */
export interface Question {
  readonly kind: string;
}

type Told<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly code: ErrorCode; readonly message: string; readonly leaderEndpoint: string | null };

/** An answer, a refusal, or null: none within the time. */
export type Heard<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: TenureError }
  | null;

export interface TransportDoor {
  readonly isAlive: () => boolean;
  /** `from`: the node that asks. Rejects with a TenureError where it refuses. */
  answer(from: string, question: Question): Promise<unknown>;
}

interface Sent {
  readonly from: string;
  readonly to: string;
  readonly question: Question;
}

export class Transport {
  readonly sent: Sent[] = [];
  /** Messages that are under way, for long. */
  late = 0;
  weather: Weather;
  readonly #world: World;
  readonly #random: Random;
  readonly #probes: TxnProbeCounts;
  readonly #keeps: (question: Question) => number;
  readonly #doors = new Map<string, TransportDoor>();
  readonly #latestMs = new Map<string, number>();
  #seen = 0;

  /** `keeps`: how many of such messages are kept at most; 0: none. */
  constructor(world: World, weather: Weather, probes: TxnProbeCounts, keeps: (question: Question) => number) {
    this.#world = world;
    this.#random = world.random.fork("transport");
    this.weather = weather;
    this.#probes = probes;
    this.#keeps = keeps;
  }

  /** A process of this node answers from now on. */
  listen(node: string, door: TransportDoor): void {
    this.#doors.set(node, door);
  }

  /** Null: no answer within the time. */
  ask<T>(boot: Boot, to: string | undefined, question: Question, withinMs: number): Promise<Heard<T>> {
    return new Promise((resolve) => {
      const end = (heard: Heard<T>): void => {
        timer.cancel();
        resolve(heard);
      };
      const timer = boot.clock.setTimer(boot.clock.monotonicMs() + withinMs, () => end(null));
      if (to === undefined) return;
      this.#keep({ from: boot.node, to, question });
      this.#send(boot.node, to, question, (asked) => {
        this.#deliver({ from: boot.node, to, question: asked }, (told) => {
          this.#send(to, boot.node, told, (heard) => {
            this.#world.call(boot.node, () => {
              if (boot.isAlive()) end(heardOf(heard as Told<T>));
            });
          });
        });
      });
    });
  }

  /** One that was sent once arrives now, whoever it is that listens there; nobody waits for the answer. */
  again({ from, to, question }: Sent): void {
    this.#deliver({ from, to, question: structuredClone(question) }, () => undefined);
  }

  #keep(sent: Sent): void {
    const most = this.#keeps(sent.question);
    if (most === 0) return;
    // Each with the same chance.
    this.#seen++;
    const kept = { ...sent, question: structuredClone(sent.question) };
    if (this.sent.length < most) this.sent.push(kept);
    else {
      const at = this.#random.below(this.#seen);
      if (at < most) this.sent[at] = kept;
    }
  }

  #deliver({ from, to, question }: Sent, answered: (told: Told<unknown>) => void): void {
    const door = this.#doors.get(to);
    if (door?.isAlive() !== true) return;
    this.#world.call(to, () => {
      if (!door.isAlive()) return;
      this.#world.scheduler.trace(question.kind, from, to);
      door.answer(from, question).then(
        (value) => door.isAlive() && answered({ ok: true, value }),
        (error: unknown) => {
          if (!door.isAlive()) return;
          if (!TenureError.is(error)) return this.#world.report(to, error);
          const { code, message } = error;
          const leaderEndpoint = (error as { leaderEndpoint?: string | null }).leaderEndpoint ?? null;
          answered({ ok: false, code, message, leaderEndpoint });
        },
      );
    });
  }

  #send<M>(from: string, to: string, message: M, arrived: (message: M) => void): void {
    if (from === to) return this.#after(from, 0, () => arrived(structuredClone(message)));
    const link = this.#world.network.link(from, to);
    if (!link.open) return this.#cut(link);
    const { lossRate, duplicateRate } = link.model;
    if (this.#random.chance(lossRate)) return link.watch.lost?.();
    const isTwice = this.#random.chance(duplicateRate);
    if (isTwice) {
      link.watch.duplicated?.();
      reached(this.#probes, "message-twice");
    }
    link.watch.carried?.();
    for (let copies = isTwice ? 2 : 1; copies > 0; copies--) {
      const copy = structuredClone(message);
      this.#after(from, this.#wayMs(from, to), () => {
        if (link.open) arrived(copy);
        else this.#cut(link);
      });
    }
  }

  #cut({ watch }: { readonly watch: { readonly cut?: (() => void) | undefined } }): void {
    watch.cut?.();
    reached(this.#probes, "cut-met-a-message");
  }

  #wayMs(from: string, to: string): number {
    const { nowMs } = this.#world;
    const { latencyMinMs, latencyTailMs } = this.#world.network.link(from, to).model;
    const isLate = this.#random.chance(this.weather.lateRate);
    if (isLate) reached(this.#probes, "late-message");
    const [leastMs, mostMs] = this.weather.lateMs;
    const lateMs = isLate ? leastMs * (mostMs / leastMs) ** this.#random.next() : 0;
    const wayMs = latencyMinMs - Math.log(1 - this.#random.next()) * latencyTailMs + lateMs;
    const way = `${from}>${to}`;
    const latestMs = this.#latestMs.get(way) ?? 0;
    if (nowMs + wayMs < latestMs) reached(this.#probes, "message-overtaken");
    this.#latestMs.set(way, Math.max(latestMs, nowMs + wayMs));
    return wayMs;
  }

  #after(node: string, afterMs: number, fire: () => void): void {
    const { scheduler } = this.#world;
    const isLate = afterMs >= TXN_SIM_LATE_MS;
    if (isLate) this.late++;
    scheduler.schedule(scheduler.nowMs + afterMs, scheduler.owner(`transport/${node}`), () => {
      if (isLate) this.late--;
      fire();
    });
  }
}

function heardOf<T>(told: Told<T>): Heard<T> {
  if (told.ok) return told;
  const error = new TenureError(told.code in ERRORS ? told.code : "INTERNAL", told.message);
  return { ok: false, error: Object.assign(error, { leaderEndpoint: told.leaderEndpoint }) };
}
