// pg-boss: through its own library. Full rate is fetch and complete in a loop for each lane, which is faster than its worker
// (that polls); one at a time is its worker, woken by NOTIFY. It keeps what is done.
//
// The parts of its interface that are used stand here: `npm run check` does not need the peers to be installed.

import { KIND, type Payload, type Side, type Told, type Worker, type WorkOptions } from "./jobs-side.ts";

const CONNECTIONS_MAX = 20;
/** Between two looks at a queue that was empty. */
const EMPTY_MS = 2;

interface Fetched {
  readonly id: string;
  readonly data: Payload;
}

interface Boss {
  on(event: "error", listener: (error: unknown) => void): void;
  start(): Promise<unknown>;
  stop(options: { graceful: boolean }): Promise<void>;
  createQueue(name: string, options: object): Promise<void>;
  send(name: string, data: Payload): Promise<string | null>;
  insert(name: string, jobs: readonly { readonly data: Payload }[]): Promise<unknown>;
  fetch(name: string, options: { batchSize: number }): Promise<readonly Fetched[] | null>;
  complete(name: string, ids: readonly string[]): Promise<unknown>;
  work(name: string, options: object, handler: (jobs: readonly Fetched[]) => Promise<void>): Promise<string>;
  offWork(name: string): Promise<void>;
}

interface Library {
  readonly PgBoss: new (options: object) => Boss;
}

export class PgBossSide implements Side {
  readonly #boss: Boss;

  private constructor(boss: Boss) {
    this.#boss = boss;
  }

  static async open(url: string): Promise<PgBossSide> {
    const name = "pg-boss";
    const { PgBoss } = (await import(name)) as Library;
    const boss = new PgBoss({ connectionString: url, max: CONNECTIONS_MAX, useListenNotify: true, schedule: false });
    boss.on("error", (error) => console.error(error));
    await boss.start();
    await boss.createQueue(KIND, { notify: true });
    return new PgBossSide(boss);
  }

  async submit(_lane: number, sentMs: number, count: number): Promise<void> {
    if (count === 1) await this.#boss.send(KIND, { sentMs });
    else
      await this.#boss.insert(
        KIND,
        Array.from({ length: count }, () => ({ data: { sentMs } })),
      );
  }

  async work({ batch, lanes }: WorkOptions, told: Told): Promise<Worker> {
    const boss = this.#boss;
    if (batch === 1 && lanes === 1) {
      await boss.work(KIND, { pollingIntervalSeconds: 0.5, batchSize: 1 }, async (jobs) => {
        for (const { data } of jobs) told.handled(data.sentMs);
        // It completes them when this has returned, and says nothing of it.
        setTimeout(() => told.committed(jobs.length), EMPTY_MS);
      });
      return { stop: () => boss.offWork(KIND) };
    }
    const order = { isStopped: false };
    const done = Promise.all(Array.from({ length: lanes }, () => this.#lane(batch, told, order)));
    done.catch((error: unknown) => told.failed(error));
    return {
      stop: async () => {
        order.isStopped = true;
        await done.catch(() => undefined);
      },
    };
  }

  async #lane(batch: number, told: Told, order: { readonly isStopped: boolean }): Promise<void> {
    while (!order.isStopped) {
      const jobs = (await this.#boss.fetch(KIND, { batchSize: batch })) ?? [];
      if (jobs.length === 0) {
        await new Promise((resolve) => setTimeout(resolve, EMPTY_MS));
        continue;
      }
      for (const { data } of jobs) told.handled(data.sentMs);
      await this.#boss.complete(
        KIND,
        jobs.map(({ id }) => id),
      );
      told.committed(jobs.length);
    }
  }

  async close(): Promise<void> {
    await this.#boss.stop({ graceful: false });
  }
}
