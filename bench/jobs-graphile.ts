// graphile-worker: through its own library, with the settings that its performance guide names for batches. It deletes what is
// done; a trigger keeps those rows, in the same transaction and with one statement for a batch, so that it keeps what we keep.
//
// It says "complete" when it has sent the completion, not when that is committed, and has no later word for it. So its rate is
// counted a little early, in its favour; over a window this is at most what is under way at its end.
//
// The parts of its interface that are used stand here: `npm run check` does not need the peers to be installed.

import { EventEmitter } from "node:events";
import { Client, Pool } from "pg";
import { KIND, type Payload, type Side, type Told, type Worker, type WorkOptions } from "./jobs-side.ts";

const CONNECTIONS_MAX = 20;
const BATCH_CONCURRENCY = 24;
const BATCH_LOCAL_QUEUE = 500;
const POLL_MS = 100;

const KEEP = `
  create table if not exists kept_jobs (id bigint, task_id int, payload json, attempts int, created_at timestamptz,
    done_at timestamptz not null default now());
  create or replace function keep_jobs() returns trigger language plpgsql as $$
  begin
    insert into kept_jobs (id, task_id, payload, attempts, created_at)
      select id, task_id, payload, attempts, created_at from gone;
    return null;
  end $$;
  create or replace trigger keep_jobs after delete on graphile_worker._private_jobs
    referencing old table as gone for each statement execute function keep_jobs();`;

interface Utils {
  migrate(): Promise<void>;
  addJob(identifier: string, payload: Payload): Promise<unknown>;
  addJobs(jobs: readonly { readonly identifier: string; readonly payload: Payload }[]): Promise<unknown>;
  release(): Promise<void>;
}

interface Graphile {
  makeWorkerUtils(options: object): Promise<Utils>;
  run(options: object): Promise<{ stop(): Promise<void> }>;
  readonly Logger: new (factory: () => () => void) => unknown;
}

export class GraphileSide implements Side {
  readonly #library: Graphile;
  readonly #utils: Utils;
  readonly #pool: Pool;
  readonly #url: string;

  private constructor(library: Graphile, utils: Utils, pool: Pool, url: string) {
    this.#library = library;
    this.#utils = utils;
    this.#pool = pool;
    this.#url = url;
  }

  static async open(url: string): Promise<GraphileSide> {
    const name = "graphile-worker";
    const library = (await import(name)) as Graphile;
    const pool = new Pool({ connectionString: url, max: CONNECTIONS_MAX });
    pool.on("error", () => undefined);
    const utils = await library.makeWorkerUtils({ pgPool: pool, logger: new library.Logger(() => () => undefined) });
    await utils.migrate();
    const client = new Client({ connectionString: url });
    await client.connect();
    await client.query(KEEP);
    await client.end();
    return new GraphileSide(library, utils, pool, url);
  }

  async submit(_lane: number, sentMs: number, count: number): Promise<void> {
    if (count === 1) await this.#utils.addJob(KIND, { sentMs });
    else await this.#utils.addJobs(Array.from({ length: count }, () => ({ identifier: KIND, payload: { sentMs } })));
  }

  async work({ batch, lanes }: WorkOptions, told: Told): Promise<Worker> {
    const library = this.#library;
    const isBatched = batch > 1;
    const events = new EventEmitter();
    events.on("job:complete", () => told.committed(1));
    const runner = await library.run({
      connectionString: this.#url,
      maxPoolSize: CONNECTIONS_MAX,
      logger: new library.Logger(() => () => undefined),
      concurrency: isBatched ? BATCH_CONCURRENCY : lanes,
      pollInterval: POLL_MS,
      noHandleSignals: true,
      events,
      taskList: { [KIND]: async (payload: Payload) => told.handled(payload.sentMs) },
      ...(isBatched
        ? {
            preset: {
              worker: { localQueue: { size: BATCH_LOCAL_QUEUE }, completeJobBatchDelay: 0, failJobBatchDelay: 0 },
            },
          }
        : {}),
    });
    return { stop: () => runner.stop() };
  }

  async close(): Promise<void> {
    await this.#utils.release();
    await this.#pool.end();
  }
}
