// What a service does with an elector, in one life of one node: it leads, works, resigns, is stopped, throws, overruns,
// closes and begins again, and asks the gate before each effect. Once the faults are over it leads for as long as it can.

import { NotLeaderError } from "../../core/kit/errors.ts";
import type { Random } from "../../core/kit/random.ts";
import type { Instant } from "../../core/trust/window.ts";
import { ScopeElector } from "../../electors/elector.ts";
import type { Backend } from "../../ports/backends/backend.ts";
import type { Term } from "../../ports/elector.ts";
import type { Logger } from "../../ports/logger.ts";
import type { Boot } from "../kernel/index.ts";
import type { Disturbance, Instance } from "./instance-oracle.ts";
import type { Knobs } from "./knobs.ts";
import type { Oracle } from "./oracle.ts";
import type { Post } from "./post.ts";
import { SimSeat, type TermExtras } from "./seat.ts";
import { type Habit, HABITS, REWOUND } from "./habits.ts";

const SCOPE = "sim";
const CAMPAIGNS_PER_ELECTOR = 4;

export interface UserOptions {
  readonly boot: Boot;
  readonly knobs: Knobs;
  readonly post: Post;
  readonly oracle: Oracle;
  readonly isCalm: () => boolean;
  readonly tell: (text: string) => void;
}

export class User {
  readonly #options: UserOptions;
  readonly #random: Random;
  #elector: ScopeElector<TermExtras> | undefined;
  #watched: Instance | undefined;
  #electors = 0;
  #doing: Habit | "nothing" = "nothing";
  #observed: number | null = null;

  constructor(options: UserOptions) {
    this.#options = options;
    this.#random = options.boot.random.fork("user");
  }

  get settled(): boolean {
    return this.#options.isCalm() && (this.#doing === "stay" || !this.leads);
  }

  get doing(): string {
    return this.#doing;
  }

  get observed(): number | null {
    return this.#observed;
  }

  get identity(): string | undefined {
    return this.#elector?.identity;
  }

  get leads(): boolean {
    return this.#elector?.gate.isLeader ?? false;
  }

  disturbed(by: Disturbance): void {
    this.#watched?.disturbed(by);
  }

  async live(): Promise<void> {
    for (;;) {
      const elector = this.#newElector();
      void this.#observe(elector).catch((error: unknown) => this.#options.boot.fatal(error));
      for (let campaign = 0; campaign < CAMPAIGNS_PER_ELECTOR; campaign++) {
        // What the message says: such a process is restarted.
        if ((await this.#campaign(elector)) === REWOUND) break;
      }
      await elector.close();
    }
  }

  #newElector(): ScopeElector<TermExtras> {
    const { boot, oracle } = this.#options;
    const identity = `${boot.node}/${boot.life}/${++this.#electors}`;
    const watched = oracle.instance(boot.node);
    this.#watched = watched;
    const elector = new ScopeElector<TermExtras>(
      {
        scope: SCOPE,
        identity,
        backend: this.#backend(identity, watched),
        onTransition: (transition) => {
          this.#options.tell(`${transition.kind} ${"epoch" in transition ? transition.epoch : ""}`);
          watched.transition(this.#now(), transition, elector.gate.isLeader);
          return this.#misbehave(elector);
        },
        logger: this.#logger(),
      },
      {
        clock: boot.clock,
        random: this.#random.fork(`elector/${this.#electors}`),
        uuid: () => identity,
        warn: () => undefined,
      },
    );
    this.#elector = elector;
    return elector;
  }

  /** As callbacks of users may (trap 80). */
  #misbehave(elector: ScopeElector<TermExtras>): void {
    const { knobs, oracle, isCalm } = this.#options;
    if (!knobs.hostile || isCalm() || !this.#random.chance(0.5)) return;
    oracle.reached("callback-misbehaved");
    const deed = this.#random.below(4);
    // eslint-disable-next-line no-throw-literal -- That is what must do no harm.
    if (deed === 0) throw Object.create(null);
    if (deed === 1) return Promise.reject(new Error("later")) as unknown as void;
    if (deed === 2) void elector.leader().catch(() => undefined);
    else void elector.close();
  }

  #logger(): Logger {
    const say = (): void => {
      if (this.#options.knobs.hostile) throw new Error("a logger that throws");
    };
    return { info: say, warn: say, error: say };
  }

  #backend(identity: string, watched: Instance): Backend<TermExtras> {
    const { boot, knobs, post, oracle } = this.#options;
    const events = {
      asked: () => watched.asked(boot.clock.monotonicMs()),
      released: (confirmed: boolean) => void (confirmed || oracle.reached("release-not-confirmed")),
      abandoned: (epoch: number | null) => watched.abandoned(epoch),
      proved: (_epoch: number, sentAt: Instant) => watched.proved(this.#now(), sentAt),
      beating: () => watched.beating(),
      beatFailed: (epoch: number) => watched.beatFailed(epoch),
      lost: (epoch: number) => watched.lost(epoch),
      misused: (how: string) => oracle.fail(boot.node, how),
      answeredLate: () => oracle.reached("late-answer-of-an-earlier-term"),
    };
    const { flavour, timing, seat } = knobs;
    return {
      kind: flavour,
      host: boot.node,
      timing,
      seat: (claim) => new SimSeat(identity, flavour, post, claim, { timing: seat, events }),
    };
  }

  async #observe(elector: ScopeElector<TermExtras>): Promise<void> {
    for await (const leader of elector.observe()) {
      if (elector !== this.#elector) continue;
      this.#observed = leader?.epoch ?? null;
      if (leader !== null) this.#watched?.observed(leader.epoch);
    }
  }

  async #campaign(elector: ScopeElector<TermExtras>): Promise<unknown> {
    const habit = this.#nextHabit();
    this.#doing = habit;
    this.#options.tell(`campaigns: ${habit}`);
    const { oracle, knobs } = this.#options;
    const end = await HABITS[habit]({ elector, user: this, oracle, drainMs: knobs.drainMs });
    await this.sleep(this.#random.between(0, 300));
    return end;
  }

  #nextHabit(): Habit {
    const { isCalm, knobs } = this.#options;
    if (isCalm() || !this.#random.chance(knobs.restlessness)) return "stay";
    return this.#random.pick(Object.keys(HABITS) as Habit[]);
  }

  get random(): Random {
    return this.#random;
  }

  /** How long a user's own plans take: from a moment to a little more than the server timeout. */
  whileMs(): number {
    return this.#random.between(0, 1.2) * this.#options.knobs.timing.serverTimeoutMs;
  }

  sleep(forMs: number): Promise<void> {
    const { clock } = this.#options.boot;
    return new Promise((resolve) => {
      clock.setTimer(clock.monotonicMs() + forMs, resolve);
    });
  }

  after(forMs: number, fire: () => void): void {
    const { clock } = this.#options.boot;
    clock.setTimer(clock.monotonicMs() + forMs, fire);
  }

  /** Effects, one after the other, each after the gate, until the term is over or the time has come. */
  async work(term: Term & TermExtras, forMs: number, lingerMs = 0): Promise<"done" | "stopped"> {
    const watched = this.#watched!;
    const { clock } = this.#options.boot;
    const untilMs = clock.monotonicMs() + forMs;
    let lingerUntilMs = Infinity;
    const stopped = (): void => {
      lingerUntilMs = clock.monotonicMs() + lingerMs;
      watched.workStopped(this.#now());
    };
    term.signal.addEventListener("abort", stopped, { once: true });
    while (clock.monotonicMs() < untilMs) {
      await this.sleep(this.#options.knobs.tickMs * this.#random.between(0.5, 1.5));
      if (clock.monotonicMs() >= lingerUntilMs) return "stopped";
      watched.look(this.#now());
      this.#act(term, watched);
    }
    return "done";
  }

  /** Work that `lead` runs: never two at once. */
  async led(term: Term & TermExtras, forMs: number, lingerMs = 0): Promise<"done" | "stopped"> {
    const watched = this.#watched!;
    watched.workBegan();
    try {
      const outcome = await this.work(term, forMs, lingerMs);
      if (outcome === "stopped" && lingerMs > 0) this.#options.oracle.reached("work-outlived-its-term");
      return outcome;
    } finally {
      watched.workEnded();
    }
  }

  #act(term: Term & TermExtras, watched: Instance): void {
    const { gate } = this.#elector!;
    const { timing } = this.#options.knobs;
    try {
      const dice = this.#random.next();
      if (dice < 0.02) gate.ensureEpoch(term.epoch - 1);
      const forMs = dice < 0.1 ? timing.serverTimeoutMs * this.#random.between(0.3, 0.8) : undefined;
      const epoch = dice < 0.5 ? gate.requireLeader({ forMs, effect: "act" }) : term.check({ forMs });
      watched.gatePassed(epoch);
      if (epoch !== term.epoch)
        this.#options.oracle.fail(this.#options.boot.node, `the gate gave epoch ${epoch} to the work of ${term.epoch}`);
      if (dice > 1 - this.#options.knobs.writeShare)
        void term.write().catch((error: unknown) => this.#options.boot.fatal(error));
    } catch (error) {
      if (!NotLeaderError.is(error)) throw error;
      watched.gateRefused(error.reason);
    }
  }

  #now(): Instant {
    const { clock } = this.#options.boot;
    return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
  }
}
