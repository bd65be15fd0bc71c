// Schedules in a run of jobs: who puts, pauses and replaces them, and what they cost. Servers use what production uses, over their
// own clocks; a question for a schedule's next time, and each event that is decided, is charged for in virtual time, as if the machine were
// slow. A turn that takes longer than TURN_BUDGET_MS is a violation: a leader that works for as long as its quorum waits is
// deposed, by its own turn (trap 71).

import type { Random } from "../../core/kit/random.ts";
import { PLAIN_SPEC, type Schedule } from "../../core/jobs/model.ts";
import { nextFireBy } from "../../node/assembly/schedules.ts";
import type { Request } from "../../ports/jobs.ts";
import type { Boot, Owner } from "../kernel/index.ts";
import type { JobsCluster } from "./cluster.ts";
import { insist } from "./post.ts";
import { CRON_LINES, ZONE_MINUTES } from "./oracle/schedule-ledger.ts";

/** A twelfth of what a quorum waits for its leader; many times what a slice is. */
const TURN_BUDGET_MS = 25;
const AGAIN_MS: readonly [number, number] = [30, 150];
const ASK_AGAIN_MAX = 200;

const nextFire = nextFireBy((zone) => ({ offsetMinutesAt: () => ZONE_MINUTES[zone]! }));

/** What servers are made with: the times of schedules and ids, for which they pay. */
export interface Charged {
  readonly nextFire: (cron: string, timeZone: string, afterMs: number) => number | null;
  readonly newId: () => string;
}

export function charged(cluster: JobsCluster, { node, life }: Boot, newId: () => string): Charged {
  const { world, knobs } = cluster;
  const { process } = world.node(node);
  const pay = (ms: number): void => {
    if (process.life?.number !== life) return;
    const tookMs = process.charge(ms);
    if (tookMs > TURN_BUDGET_MS)
      world.report(
        node,
        new Error(`${node} works for ${tookMs.toFixed(1)} ms in one turn, and keeps its quorum waiting`),
      );
  };
  return {
    nextFire: (cron, timeZone, afterMs) => {
      pay(knobs.nextFireMs);
      return nextFire(cron, timeZone, afterMs);
    },
    newId: () => {
      pay(knobs.eventMs);
      return newId();
    },
  };
}

/** One client for all of them. It asks until it is answered: under a key, so that it is done once. */
export class ScheduleClient {
  readonly #cluster: JobsCluster;
  readonly #random: Random;
  readonly #owner: Owner;
  #asked = 0;

  constructor(cluster: JobsCluster) {
    this.#cluster = cluster;
    this.#random = cluster.random.fork("schedules");
    this.#owner = cluster.world.scheduler.owner("schedules");
  }

  start(): void {
    const { knobs } = this.#cluster;
    for (let at = 0; at < knobs.schedules; at++) {
      const random = this.#random.fork(`schedule/${at}`);
      const schedule = draw(random, `s${at}`);
      this.#cluster.later(this.#owner, random.between(0, 0.15) * knobs.faultsUntilMs, () => this.#put(schedule));
      if (!random.chance(0.3)) continue;
      const changed = random.chance(0.5) ? { ...draw(random, schedule.name) } : { ...schedule, paused: true };
      this.#cluster.later(this.#owner, random.between(0.3, 0.9) * knobs.faultsUntilMs, () => this.#put(changed));
      if (random.chance(0.7))
        this.#cluster.later(this.#owner, knobs.faultsUntilMs, () => this.#put({ ...changed, paused: false }));
    }
  }

  #put(schedule: Schedule): void {
    const key = `schedule-${++this.#asked}`;
    const request: Request = { caller: "schedules", idempotencyKey: key, bodyHash: key };
    insist<void>(this.#cluster, {
      owner: this.#owner,
      random: (times) => this.#random.fork(`${key}/${times}`),
      againMs: AGAIN_MS,
      againMax: ASK_AGAIN_MAX,
      letter: () => ({
        ask: ({ service }) => service.putSchedule(request, schedule),
        judge: ({ node }, answer) => answer.ok && this.#cluster.ledger.answered(node, key),
      }),
    });
  }
}

function draw(random: Random, name: string): Schedule {
  const cron = random.fork("cron").pick([CRON_LINES[0]!, ...CRON_LINES]);
  // Those of each minute have up to a hundred times to catch up with: a job for each would take agents longer than a run.
  const isOften = CRON_LINES.indexOf(cron) < 2;
  const overlap = isOften || random.fork("overlap").chance(0.3) ? "skip" : "allow";
  return {
    name,
    cron,
    timeZone: random.fork("zone").pick(Object.keys(ZONE_MINUTES)),
    overlap,
    catchUp: random.fork("catch-up").pick(["all", "all", "all", "last", "none"]),
    paused: false,
    spec: {
      ...PLAIN_SPEC,
      kind: "work",
      // No client's call.
      payload: { call: -1 },
      queue: name,
      attemptsMax: 2,
      lossesMax: 5,
      backoff: { baseMs: 20, maxMs: 200 },
      retentionMs: 600_000,
    },
  };
}
