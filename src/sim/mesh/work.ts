// Who works at the sites of a simulated mesh: at each a client, who submits, cancels and retries, makes API keys and revokes them, and an
// agent, who leases, logs, and reports. Both ask whoever leads their site; where nobody answers, they ask again later.

import type { Random } from "../../core/kit/random.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { PLAIN_SPEC } from "../../core/jobs/model.ts";
import type { GivenLease, LeaseRef, Request } from "../../ports/jobs.ts";
import type { Owner } from "../kernel/index.ts";
import type { Ledger } from "./ledger.ts";
import type { SimSite, SiteServer } from "./site.ts";

const FIRST_MS = 300;
const TTL_MS = 2_500;
const POLL_MS: readonly [number, number] = [40, 160];
/** Once nobody submits any more and nothing was leased for a while. */
const IDLE_POLL_MS: readonly [number, number] = [800, 1_200];
const IDLE_POLLS = 20;
const LOG_RATE = 0.4;
const FAILURE_RATE = 0.15;

export class SiteWork {
  readonly #site: SimSite;
  readonly #ledger: Ledger;
  readonly #random: Random;
  readonly #client: Owner;
  readonly #agent: Owner;
  readonly #jobs: string[] = [];
  #submitted = 0;
  #requests = 0;
  #isStopped = false;
  #polls = 0;
  /** Polls in a row that were given nothing. */
  #emptyPolls = 0;
  #lives = 0;
  #session: Session;

  constructor(site: SimSite, ledger: Ledger) {
    this.#site = site;
    this.#ledger = ledger;
    this.#random = site.random.fork("work");
    this.#client = site.world.scheduler.owner(`client/${site.id}`);
    this.#agent = site.world.scheduler.owner(`agent/${site.id}`);
    this.#session = this.#newSession();
  }

  start(): void {
    this.#later(this.#client, this.#random.between(0, FIRST_MS), () => this.#next());
    this.#later(this.#agent, this.#random.between(0, FIRST_MS), () => this.#turn());
  }

  /** No new jobs; what was begun ends. */
  stop(): void {
    this.#isStopped = true;
  }

  #newSession(): Session {
    return { name: `w-${this.#site.id}-${++this.#lives}`, epoch: undefined, answered: 0 };
  }

  #later(owner: Owner, afterMs: number, fire: () => void): void {
    const { scheduler } = this.#site.world;
    scheduler.schedule(scheduler.nowMs + afterMs, owner, fire);
  }

  #next(): void {
    if (this.#isStopped) return;
    const { knobs } = this.#site;
    const random = this.#random;
    this.#later(this.#client, random.between(0.2, 1.8) * knobs.clientPauseMs, () => this.#next());
    const jobId = this.#jobs.length > 0 && random.chance(0.25) ? random.pick(this.#jobs) : null;
    if (random.chance(0.08)) return this.#key();
    if (jobId !== null) {
      const kind = random.chance(0.6) ? "cancel" : "retry";
      return this.#ask((server, request) => server.parts.jobs[kind](request, jobId).then(() => undefined));
    }
    if (this.#submitted >= knobs.jobsMax) return;
    this.#submitted++;
    const payload = { n: this.#submitted };
    const spec = {
      ...PLAIN_SPEC,
      kind: "work",
      attemptsMax: 2,
      lossesMax: 5,
      retentionMs: 3_600_000,
      backoff: { baseMs: 50, maxMs: 100 },
      payload,
    };
    this.#ask(async (server, request) => {
      const afterMs = this.#ledger.causeOf(server.node);
      const ids = await server.parts.jobs.submit(request, [spec]);
      this.#jobs.push(...ids);
      this.#ledger.acknowledged(this.#site.id, ids, afterMs);
    });
  }

  /** Of what is withheld: it must not leave the site. */
  #key(): void {
    const name = `key-${this.#random.below(3)}`;
    const sha256 = this.#random
      .below(2 ** 31)
      .toString(16)
      .padStart(64, "0");
    this.#ask(async ({ parts }, request) => {
      if (parts.keys.list().some((key) => key.name === name)) await parts.keys.revoke(request, name);
      else await parts.keys.create(request, { name, role: "viewer", sha256 });
    });
  }

  /** In whoever leads; refusals are none of the mesh's business. */
  #ask(what: (server: SiteServer, request: Request) => Promise<void>): void {
    const { world, names } = this.#site;
    const to = this.#site.leader() ?? this.#random.pick(names);
    const request = { caller: "c", idempotencyKey: `k${++this.#requests}`, bodyHash: "" };
    world.call(to, () => {
      const server = this.#site.server(to);
      if (server === undefined) return;
      what(server, request).catch((error: unknown) => {
        if (!TenureError.is(error) && this.#site.server(to) === server) world.report(to, error);
      });
    });
  }

  #turn(): void {
    const isIdle = this.#isStopped && this.#emptyPolls >= IDLE_POLLS;
    this.#later(this.#agent, this.#random.between(...(isIdle ? IDLE_POLL_MS : POLL_MS)), () => this.#turn());
    const session = this.#session;
    const poll = ++this.#polls;
    this.#ask(async ({ parts }) => {
      try {
        const { leases, agentEpoch, leaderEpoch } = await parts.jobs.lease(
          {
            agent: {
              name: `w-${this.#site.id}`,
              session: session.name,
              kinds: ["work"],
              labels: {},
              platform: "sim",
              capacity: 1,
            },
            agentEpoch: session.epoch,
            renew: [],
            progress: [],
            logs: [],
            max: 1,
            waitMs: 0,
            ttlMs: TTL_MS,
            poll,
            answered: session.answered,
          },
          new AbortController().signal,
        );
        session.epoch ??= agentEpoch;
        session.answered = poll;
        this.#emptyPolls = leases.length === 0 ? this.#emptyPolls + 1 : 0;
        for (const lease of leases) this.#begin(session, lease, leaderEpoch);
      } catch (error) {
        // Another process has the name: a new one is started.
        if (TenureError.is(error) && error.code === "STALE_EPOCH" && session === this.#session)
          this.#session = this.#newSession();
        throw error;
      }
    });
  }

  #begin(session: Session, lease: GivenLease, leaderEpoch: number): void {
    const random = this.#random.fork(`lease/${lease.leaseId}`);
    const { jobId, jobEpoch, leaseId } = lease;
    const ref: LeaseRef = { jobId, jobEpoch, leaseId };
    const workMs = random.between(...this.#site.knobs.workMs);
    if (random.chance(LOG_RATE)) this.#later(this.#agent, workMs / 2, () => this.#log(session, ref));
    const outcome = random.chance(FAILURE_RATE)
      ? ({ kind: "failed", error: { message: "it broke", detail: null }, retry: true } as const)
      : ({ kind: "completed", result: { job: jobId } } as const);
    this.#later(this.#agent, workMs, () =>
      this.#ask(async ({ parts }) => {
        await parts.jobs.results(session.name, [{ ...ref, leaderEpoch, outcome }]);
      }),
    );
  }

  #log(session: Session, ref: LeaseRef): void {
    this.#ask(async ({ parts }) => {
      await parts.jobs.lease(
        {
          agent: {
            name: `w-${this.#site.id}`,
            session: session.name,
            kinds: ["work"],
            labels: {},
            platform: "sim",
            capacity: 1,
          },
          agentEpoch: session.epoch,
          renew: [ref],
          progress: [],
          logs: [{ ...ref, chunk: { offset: 0, text: "a secret line\n" } }],
          max: 0,
          waitMs: 0,
          ttlMs: TTL_MS,
        },
        new AbortController().signal,
      );
    });
  }
}

interface Session {
  readonly name: string;
  epoch: number | undefined;
  answered: number;
}
