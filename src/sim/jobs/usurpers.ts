// A name that many processes take, one after another, while its agent stands still: more than a book remembers (trap 75). Each
// registers and is never heard of again; now and then an operator removes the agent after the last. Then the agent goes on, and
// what it says under its old epoch must be refused.

import { AGENT_SESSIONS_KEPT } from "../../core/kit/limits.ts";
import type { LeaseAnswer, LeaseCall } from "../../ports/jobs.ts";
import { apply } from "../kernel/index.ts";
import type { JobsCluster } from "./cluster.ts";
import { type Answer, post } from "./post.ts";
import { reached } from "./probes.ts";

export interface Usurpation {
  readonly atMs: number;
  readonly kind: "usurp-agent";
  readonly node: string;
  readonly removes: boolean;
}

/**
 * Whose name is being taken, or was: it loses its leases at once, rightly held or not, and hears of it later. Also those who begin
 * while a call of a usurper is under way, which may be decided late.
 */
export class Usurped {
  readonly #underWay = new Map<string, number>();
  readonly #sessions = new Set<string>();

  begin(name: string, session: string): void {
    this.#underWay.set(name, (this.#underWay.get(name) ?? 0) + 1);
    this.#sessions.add(session);
  }

  /** Never called of one whose server died with it: what it has written may be committed at any time. */
  end(name: string, session: string): void {
    this.#underWay.set(name, (this.#underWay.get(name) ?? 0) - 1);
    this.#sessions.add(session);
  }

  has(name: string, session: string): boolean {
    return (this.#underWay.get(name) ?? 0) > 0 || this.#sessions.has(session);
  }
}

const USURPERS = AGENT_SESSIONS_KEPT + 2;
/** Each has so long before it is tried again. */
const TRY_MS = 120;
/** Of a lease: nobody believes in the agent's leases any more, by whichever clock. */
const LEASES = 1.3;

export function usurp(cluster: JobsCluster, fault: Usurpation, hit: () => void): void {
  const { world, knobs } = cluster;
  const { atMs, node, removes } = fault;
  const answered = cluster.sessions.get(node);
  // One that does not know that it was registered may register whenever it goes on.
  if (answered?.isSure !== true || answered.life !== world.node(node).process.life?.number) {
    if (world.nowMs > knobs.faultsUntilMs / 2) return;
    const again = (): void => usurp(cluster, fault, hit);
    return void world.scheduler.schedule(world.nowMs + TRY_MS, world.scheduler.owner(`usurp/${node}`), again);
  }
  const waitMs = knobs.ttlMs * LEASES;
  apply(world, { atMs, kind: "pause", node, forMs: waitMs + USURPERS * TRY_MS }, { hit });
  new Usurpers(cluster, node, removes).after(waitMs, 1);
}

class Usurpers {
  readonly #cluster: JobsCluster;
  readonly #node: string;
  readonly #removes: boolean;
  readonly #random: JobsCluster["random"];
  #tries = 0;

  constructor(cluster: JobsCluster, node: string, removes: boolean) {
    this.#cluster = cluster;
    this.#node = node;
    this.#removes = removes;
    this.#random = cluster.random.fork(`usurp/${node}/${cluster.world.nowMs}`);
  }

  after(afterMs: number, number: number): void {
    this.#later(afterMs, () => this.#try(number));
  }

  #later(afterMs: number, fire: () => void): void {
    this.#cluster.later(this.#cluster.world.scheduler.owner(`usurp/${this.#node}`), afterMs, fire);
  }

  #try(number: number): void {
    if (number > USURPERS) return this.#removes ? this.#remove() : undefined;
    let isOpen = true;
    const next = (isDone: boolean): void => {
      if (!isOpen) return;
      isOpen = false;
      this.after(0, isDone ? number + 1 : number);
    };
    const call = this.#call(`${this.#node}/${number}`);
    this.#post(
      ({ service }) => service.lease(call, new AbortController().signal),
      (answer) => next(answer.ok),
    );
    this.#later(TRY_MS, () => next(false));
    if (number === USURPERS) reached(this.#cluster.probes, "name-taken-often");
  }

  /** Of the agent's process now, as agents.ts calls it. */
  #session(): string {
    return `${this.#node}-${this.#cluster.world.node(this.#node).process.life?.number}`;
  }

  #call(session: string): LeaseCall {
    const agent = { name: this.#node, session, kinds: ["none"], labels: {}, platform: "sim", capacity: 1 };
    return { agent, renew: [], progress: [], logs: [], max: 0, waitMs: 0, ttlMs: this.#cluster.knobs.ttlMs };
  }

  #remove(): void {
    const request = { caller: "operator", idempotencyKey: null, bodyHash: "" };
    this.#post(
      ({ service }) => service.removeAgent(request, this.#node),
      (answer) => answer.ok && reached(this.#cluster.probes, "agent-removed"),
    );
  }

  #post<T extends LeaseAnswer | void>(
    ask: Parameters<typeof post<T>>[1]["ask"],
    arrived: (answer: Answer<T>) => void,
  ): void {
    const { names, usurped } = this.#cluster;
    post<T>(this.#cluster, {
      random: this.#random.fork(`${++this.#tries}`),
      from: null,
      to: this.#cluster.leader() ?? this.#random.pick(names),
      ask: async (server) => {
        usurped.begin(this.#node, this.#session());
        try {
          return await ask(server);
        } finally {
          usurped.end(this.#node, this.#session());
        }
      },
      judge: () => undefined,
      arrived,
    });
  }
}
