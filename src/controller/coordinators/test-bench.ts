// One coordinator of production, "a@1", and others that answer as voters do: each answer can be kept for later, or never come. Its disk hangs when
// the test says so.

import { type PeerKey, nodeIdOf } from "../../core/kit/ids.ts";
import { seededRandom } from "../../core/kit/random.ts";
import { Voter } from "../../core/lease/index.ts";
import { ledgerOf, rosterOf } from "../../core/lease/test-lease.ts";
import { HandClock } from "../../loops/test-clock.ts";
import type { Answered, AnswerTo, CoordinatorCalls, CoordinatorRequest, LedgerFile } from "../../ports/coordinators.ts";
import type { CoordinatorNews, CoordinatorOptions } from "./context.ts";
import { Coordinator } from "./coordinator.ts";

export interface Sent {
  readonly to: string;
  readonly request: CoordinatorRequest;
}

/** Not at once: a loop without end is to take time. */
const ANSWER_MS = 1;

type Which = (sent: Sent) => boolean;

export class Bench implements CoordinatorCalls, LedgerFile {
  readonly clock = new HandClock();
  readonly self: PeerKey;
  readonly others = new Map<string, Voter>();
  /** Of which island a node says that it is. */
  readonly backends = new Map<string, string>();
  readonly sent: Sent[] = [];
  readonly news: CoordinatorNews[] = [];
  readonly fatals: unknown[] = [];
  /** What never arrives. */
  isLost: Which = () => false;
  /** How long an answer takes. */
  delayMs: (sent: Sent) => number = () => ANSWER_MS;
  /** What is answered, and whose answer is kept until `deliver`. */
  isKept: Which = () => false;
  /** What is under way until `arrive`. */
  isLate: Which = () => false;
  /** Writes of the ledger do not end any more. */
  isHung = false;
  readonly #kept: (() => void)[] = [];
  readonly #late: (() => void)[] = [];
  readonly #hung: (() => void)[] = [];
  readonly #roster;

  constructor(...peers: readonly string[]) {
    const [self = "a@1", ...others] = peers.length === 0 ? ["a@1", "b@1", "c@1"] : peers;
    this.self = self as PeerKey;
    this.#roster = rosterOf(0, 1, self, ...others);
    for (const other of others) this.seat(other);
  }

  /** The voter that answers at the endpoint of this name; the one before it is gone. */
  seat(peer: string): Voter {
    const voter = new Voter(peer as PeerKey, ledgerOf(this.#roster), this.clock.nowMs);
    this.others.set(nodeIdOf(voter.self), voter);
    return voter;
  }

  start(more: Partial<CoordinatorOptions> = {}): Coordinator {
    const coordinator = new Coordinator(this.options(more));
    coordinator.start();
    return coordinator;
  }

  options(more: Partial<CoordinatorOptions> = {}): CoordinatorOptions {
    return {
      self: this.self,
      endpoint: nodeIdOf(this.self),
      seeds: [],
      ledger: ledgerOf(this.#roster),
      file: this,
      calls: this,
      clock: this.clock,
      random: seededRandom(1),
      work: { begins: () => {}, ends: () => Promise.resolve() },
      newClusterId: () => "cluster-2",
      news: (news) => void this.news.push(news),
      fatal: (error) => void this.fatals.push(error),
      ...more,
    };
  }

  /** Late answers, in their order. */
  deliver(): void {
    for (const answer of this.#kept.splice(0)) answer();
  }

  /** Late requests, in their order. */
  arrive(): void {
    for (const request of this.#late.splice(0)) request();
  }

  /** Its disk works again, and ends what it was given. */
  recover(): void {
    this.isHung = false;
    for (const end of this.#hung.splice(0)) end();
  }

  /** All of them are listed. */
  announce(coordinator: Coordinator): void {
    for (const name of this.others.keys()) void coordinator.answer(name, { kind: "announce", endpoint: name });
  }

  kinds(kind: CoordinatorRequest["kind"]): readonly Sent[] {
    return this.sent.filter(({ request }) => request.kind === kind);
  }

  write(): Promise<void> {
    return this.isHung ? new Promise((resolve) => void this.#hung.push(resolve)) : Promise.resolve();
  }

  call<R extends CoordinatorRequest>(to: string, request: R, withinMs: number): Promise<Answered<R> | null> {
    const sent = { to, request };
    this.sent.push(sent);
    return new Promise((resolve) => {
      const timer = this.clock.setTimer(this.clock.nowMs + withinMs, () => resolve(null));
      const voter = this.others.get(to);
      if (voter === undefined || this.isLost(sent)) return;
      if (this.isLate(sent)) {
        this.#late.push(() => this.#answer(voter, request));
        return;
      }
      const answer = this.#answer(voter, request) as AnswerTo<R>;
      const arrive = (): void => {
        timer.cancel();
        resolve({ from: to, answer });
      };
      if (this.isKept(sent)) this.#kept.push(arrive);
      else this.clock.setTimer(this.clock.nowMs + this.delayMs(sent), arrive);
    });
  }

  #answer(voter: Voter, request: CoordinatorRequest): AnswerTo<CoordinatorRequest> {
    const { nowMs } = this.clock;
    switch (request.kind) {
      case "status":
        return { ...voter.statusAt(nowMs), backendHash: this.backends.get(nodeIdOf(voter.self)) };
      case "announce":
      case "leave":
        return { endpoints: [] };
      case "registry":
        return { kind: "not-leader", leaderEndpoint: null };
      default:
        return voter.decide(nowMs, nodeIdOf(this.self), request).answer;
    }
  }
}
