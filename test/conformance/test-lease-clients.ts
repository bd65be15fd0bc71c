// Clients of the scopes, outside of every server and with clocks of their own, and the oracle that watches them: no two may
// trust one scope at one time, and epochs only grow. A client is what an elector's backend must be: it trusts from the time
// at which it sent the request that was answered, less a margin for clocks, and never longer.

import { TenureError } from "../../src/core/kit/errors.ts";
import type { Random } from "../../src/core/kit/random.ts";
import { peerKey } from "../../src/core/kit/ids.ts";
import { StateFold } from "../../src/core/state/index.ts";
import { RaftLeadership } from "../../src/controller/leadership/raft-leadership.ts";
import { ALONE } from "../../src/controller/scopes/test-scopes.ts";
import { StateService } from "../../src/controller/state/state.ts";
import type { Scopes } from "../../src/ports/scopes.ts";
import type { Lead } from "../../src/ports/consensus.ts";
import type { Log } from "../../src/ports/log.ts";
import type { Owner } from "../../src/sim/kernel/index.ts";
import { RaftCluster } from "./test-log-worlds.ts";

const TTL_MS = 1_000;
/** Two clocks that differ by a tenth each way: the client's slow, the server's fast. */
const MARGIN_MS = 200;
const RATE_MIN = 0.9;
const RATE_MAX = 1.1;
const RATES = [RATE_MIN, 0.95, 1, 1.05, RATE_MAX];
const SCOPES = ["s1", "s2"];
const CLIENTS_PER_SCOPE = 3;
const PATIENCE_MS = 400;

export interface LeaseRunOptions {
  readonly seed: string;
  readonly forMs: number;
  /** Clocks as far apart as the margin allows, clients that renew all the time, and a leader that is only ever cut off. */
  readonly harsh?: boolean | undefined;
  /** Mistakes to plant. */
  readonly unconfirmedRenewals?: boolean | undefined;
  readonly trustFromTheAnswer?: boolean | undefined;
  readonly acknowledgedEarly?: boolean | undefined;
}

export interface LeaseRun {
  readonly violations: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
}

interface Trust {
  readonly client: string;
  readonly epoch: number;
  untilMs: number;
}

class Oracle {
  readonly violations: string[] = [];
  readonly counts: Record<string, number> = {};
  readonly #trusts = new Map<string, Trust>();
  readonly #epochs = new Map<string, { epoch: number; session: string }>();

  count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }

  granted(scope: string, epoch: number, session: string): void {
    const last = this.#epochs.get(scope);
    if (last !== undefined && (epoch < last.epoch || (epoch === last.epoch && session !== last.session))) {
      this.violations.push(`${scope}: epoch ${epoch} was granted after ${last.epoch}`);
    }
    this.#epochs.set(scope, { epoch, session });
  }

  trust(scope: string, client: string, epoch: number, nowMs: number, untilMs: number): void {
    if (untilMs <= nowMs) return;
    const other = this.#trusts.get(scope);
    if (other !== undefined && other.client !== client && other.untilMs > nowMs) {
      const until = other.untilMs.toFixed(1);
      this.violations.push(
        `${scope} at ${nowMs.toFixed(1)}: ${client} trusts epoch ${epoch}, and ${other.client} trusts ${other.epoch} until ${until}`,
      );
    }
    this.#trusts.set(scope, { client, epoch, untilMs });
    this.count("trusted");
  }

  dropped(scope: string, client: string): void {
    if (this.#trusts.get(scope)?.client === client) this.#trusts.delete(scope);
  }
}

class Client {
  readonly #cluster: RaftCluster<StateService>;
  readonly #oracle: Oracle;
  readonly #options: LeaseRunOptions;
  readonly #scope: string;
  readonly #name: string;
  readonly #random: Random;
  readonly #owner: Owner;
  readonly #rate: number;
  #session = "";
  #sessions = 0;
  #epoch = 0;
  /** Who answered last. */
  #home = "";

  constructor(
    cluster: RaftCluster<StateService>,
    oracle: Oracle,
    options: LeaseRunOptions,
    scope: string,
    name: string,
  ) {
    this.#cluster = cluster;
    this.#oracle = oracle;
    this.#options = options;
    this.#scope = scope;
    this.#name = name;
    this.#random = cluster.world.random.fork(`client/${name}`);
    this.#owner = cluster.world.scheduler.owner(`client/${name}`);
    this.#rate = options.harsh === true ? RATE_MIN : this.#random.pick(RATES);
  }

  start(): void {
    this.#campaign();
  }

  get #nowMs(): number {
    return this.#cluster.world.nowMs;
  }

  #later(afterMs: number, then: () => void): void {
    this.#cluster.world.scheduler.schedule(this.#nowMs + afterMs, this.#owner, then);
  }

  #campaign(): void {
    this.#session = `${this.#name}/${++this.#sessions}`;
    this.#epoch = 0;
    this.#acquire();
  }

  #acquire(): void {
    const sentMs = this.#nowMs;
    const session = this.#session;
    const request = {
      scope: this.#scope,
      session,
      identity: this.#name,
      metadata: {},
      ttlMs: TTL_MS,
      waitMs: this.#random.below(2) * 300,
    };
    const signal = new AbortController();
    this.#ask(
      (service) => service.acquire(request, signal.signal),
      (answer) => {
        if (answer.granted) {
          this.#epoch = answer.epoch;
          this.#oracle.granted(this.#scope, answer.epoch, session);
          this.#trust(sentMs);
          this.#hold();
        } else this.#later(this.#random.between(10, 60), () => this.#acquire());
      },
      // The same session, at another node perhaps: what was answered may have been lost.
      (code) => {
        if (code === "no answer" && this.#random.chance(0.3)) signal.abort();
        this.#later(this.#random.between(5, 60), () => this.#acquire());
      },
    );
  }

  #hold(): void {
    const harsh = this.#options.harsh === true;
    if (this.#random.chance(harsh ? 0.002 : 0.15)) return this.#resign();
    this.#later(harsh ? this.#random.between(5, 40) : this.#random.between(50, TTL_MS / 3), () => this.#renew());
  }

  #renew(): void {
    const sentMs = this.#nowMs;
    this.#ask(
      (service) => service.renew(this.#scope, this.#session, this.#epoch),
      () => {
        this.#oracle.count("renewed");
        this.#trust(sentMs);
        this.#hold();
      },
      (code) => {
        if (code === "STALE_EPOCH") {
          this.#oracle.dropped(this.#scope, this.#name);
          this.#campaign();
        } else this.#later(this.#random.between(5, 60), () => this.#renew());
      },
    );
  }

  #resign(): void {
    this.#oracle.dropped(this.#scope, this.#name);
    this.#oracle.count("resigned");
    const [session, epoch] = [this.#session, this.#epoch];
    this.#ask(
      (service) => service.resign(this.#scope, session, epoch),
      () => this.#later(this.#random.between(0, 500), () => this.#campaign()),
      () => this.#campaign(),
    );
  }

  #trust(sentMs: number): void {
    const fromMs = this.#options.trustFromTheAnswer === true ? this.#nowMs : sentMs;
    const untilMs = fromMs + (TTL_MS - MARGIN_MS) / this.#rate;
    this.#oracle.trust(this.#scope, this.#name, this.#epoch, this.#nowMs, untilMs);
  }

  /** To any node; each way takes time, and one in twenty is lost. Answered once, or "no answer" after a while. */
  #ask<T>(ask: (service: Scopes) => Promise<T>, onAnswer: (answer: T) => void, failed: (code: string) => void): void {
    const { world } = this.#cluster;
    const random = this.#random;
    let isOpen = true;
    const close = (then: () => void): void => {
      if (!isOpen) return;
      isOpen = false;
      then();
    };
    const back = (then: () => void): void => {
      if (random.chance(0.05)) this.#oracle.count("answers lost");
      else this.#later(random.between(0.1, random.chance(0.05) ? 900 : 3), () => close(then));
    };
    const give = (code: string): void => {
      this.#oracle.count(code);
      failed(code);
    };
    this.#later(random.chance(0.2) ? PATIENCE_MS * 3 : PATIENCE_MS, () => close(() => give("no answer")));
    const node = this.#leaderOrAny();
    this.#later(random.between(0.1, 3), () => {
      world.call(node, () => {
        const service = this.#cluster.node(node)?.extra;
        if (service === undefined) return;
        ask(service.scopes).then(
          (answer) =>
            back(() => {
              this.#home = node;
              onAnswer(answer);
            }),
          (error: unknown) => back(() => give(TenureError.is(error) ? error.code : String(error))),
        );
      });
    });
  }

  /** Mostly some node that says that it leads, of which there may be two. */
  #leaderOrAny(): string {
    const { names } = this.#cluster;
    // On the same side of a cut as the leader that it knows: the others are out of its reach too.
    if (this.#cluster.isCut(this.#home) && (this.#options.harsh === true || this.#random.chance(0.7)))
      return this.#home;
    const leaders = names.filter((name) => this.#cluster.node(name)?.engine.status().role === "leader");
    return this.#random.pick(leaders.length > 0 && this.#random.chance(0.9) ? leaders : names);
  }
}

export async function runLeases(options: LeaseRunOptions): Promise<LeaseRun> {
  const oracle = new Oracle();
  const cluster = startCluster(options, oracle);
  const { world } = cluster;
  await world.runFor(500);
  for (const scope of SCOPES) {
    for (let at = 0; at < CLIENTS_PER_SCOPE; at++)
      new Client(cluster, oracle, options, scope, `${scope}-c${at + 1}`).start();
  }
  const random = world.random.fork("faults");
  const faults = world.scheduler.owner("faults");
  const next = (): void => {
    const kinds = options.harsh === true ? ["cut", "one-way"] : ["freeze", "cut", "crash", "transfer", "one-way"];
    const forMs = disturb(cluster, random, oracle, faults, random.pick(kinds));
    world.scheduler.schedule(world.nowMs + forMs + random.between(100, 1_500), faults, next);
  };
  world.scheduler.schedule(world.nowMs + 1_000, faults, next);
  await world.runFor(options.forMs);
  for (const { node, error } of world.findings) oracle.violations.push(`${node}: ${String(error)}`);
  return { violations: oracle.violations, counts: oracle.counts };
}

function startCluster(options: LeaseRunOptions, oracle: Oracle): RaftCluster<StateService> {
  const cluster = new RaftCluster<StateService>({
    seed: options.seed,
    start: (boot) => {
      const applied = new StateFold();
      return {
        fold: applied,
        begin: ({ log, consensus, clock }) => {
          consensus.subscribe((event) => {
            if (event.kind === "established") oracle.count("leaders");
          });
          log.subscribe(
            1,
            () => oracle.count("records"),
            () => undefined,
          );
          const trusting: Pick<Lead, "status" | "readIndex" | "subscribe"> =
            options.unconfirmedRenewals === true ? { ...consensus, readIndex: () => Promise.resolve(1) } : consensus;
          const random = boot.random.fork("scopes");
          const promising = options.acknowledgedEarly === true ? eager(log) : log;
          return new StateService({
            log: promising,
            applied,
            leadership: new RaftLeadership(trusting),
            clock,
            random,
            island: ALONE,
          });
        },
      };
    },
  });
  for (const name of cluster.names) {
    const drawn = cluster.world.random.fork(`rate/${name}`).pick(RATES);
    const harsh = name === "n1" ? RATE_MIN : RATE_MAX;
    cluster.world.node(name).process.setClockRate(options.harsh === true ? harsh : drawn);
  }
  return cluster;
}

function eager(log: Log): Log {
  return {
    head: () => log.head(),
    open: (epoch) => log.open(epoch),
    append: (epoch, after, batch) => {
      log.append(epoch, after, batch).catch(() => undefined);
      return Promise.resolve({ outcome: "committed", position: after + batch.length });
    },
    read: (from, max) => log.read(from, max),
    subscribe: (from, tell, compacted) => log.subscribe(from, tell, compacted),
  };
}

/** One fault at one node, mostly the leader; returns how long it lasts. */
function disturb(
  cluster: RaftCluster<StateService>,
  random: Random,
  oracle: Oracle,
  owner: Owner,
  kind: string,
): number {
  const { world, names } = cluster;
  const leader = names.find((name) => cluster.node(name)?.engine.status().role === "leader");
  const node = leader !== undefined && random.chance(0.8) ? leader : random.pick(names);
  const forMs = random.between(50, 2_500);
  oracle.count(kind);
  const after = (then: () => void): void => void world.scheduler.schedule(world.nowMs + forMs, owner, then);
  switch (kind) {
    case "freeze":
      world.pause(node);
      after(() => world.resume(node));
      break;
    case "cut":
      cluster.cut(node);
      after(() => cluster.heal(node));
      break;
    case "one-way":
      for (const other of names) if (other !== node) world.network.cutOneWay(other, node);
      after(() => cluster.heal(node));
      break;
    case "crash":
      cluster.crash(node);
      after(() => world.start(node));
      break;
    default: {
      const target = random.pick(names.filter((name) => name !== node));
      void cluster.node(node)?.engine.transfer(peerKey(target, "a1"));
      break;
    }
  }
  return forMs;
}
