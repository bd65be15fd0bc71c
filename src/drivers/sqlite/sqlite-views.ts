// The views (ports/views.ts) over two threads (thread-pair.ts). The main thread converts jobs to JSON and back, a little at a time, and
// otherwise only posts and waits (design D10).

import type { Job } from "../../core/jobs/model.ts";
import { parseJson } from "../../core/kit/parse-json.ts";
import type {
  ExpiredJobs,
  ExpiredPlace,
  JobLog,
  JobLogPage,
  JobPage,
  JobQuery,
  JobRow,
  PutHow,
  Views,
  ViewsHole,
  ViewsHoles,
} from "../../ports/views.ts";
import { TURN_MS_MAX } from "./limits.ts";
import type { Answers, PutPiece, ReaderRequest, StoredPage, WriterRequest } from "./messages.ts";
import { type Load, PutQueue } from "./put-queue.ts";
import { type PairOptions, ThreadPair } from "./thread-pair.ts";

export type ViewsOptions = PairOptions;

export interface ViewsStats {
  readonly putsWaiting: number;
  readonly bytesInFlight: number;
  readonly readsWaiting: number;
  readonly restarts: number;
}

type ReadRequest = Extract<ReaderRequest, { kind: "reached" | "get" | "expired" | "list" | "log" }>;

export async function openViews(options: ViewsOptions): Promise<SqliteViews> {
  const views = new SqliteViews(options);
  await views.open();
  return views;
}

export class SqliteViews implements Views {
  readonly #threads: ThreadPair<WriterRequest, Answers, ReadRequest, Answers>;
  readonly #puts: PutQueue<PutPiece, Cargo>;
  /** Of pages that several asked for: parsed once. */
  readonly #pages = new WeakMap<StoredPage, Promise<JobPage>>();

  constructor(options: ViewsOptions) {
    this.#threads = new ThreadPair({ writer: "writer", reader: "reader", file: "the views'" }, options);
    const { writer } = this.#threads;
    this.#puts = new PutQueue({
      position: () => writer.ask({ kind: "position" }),
      put: (piece) => writer.ask(piece),
    });
  }

  open(): Promise<void> {
    return this.#threads.open(() => this.position());
  }

  async position(): Promise<number> {
    const position = await this.#puts.position();
    this.#threads.opened();
    return position;
  }

  async line(): Promise<string | null> {
    await this.#puts.idle();
    return this.#threads.writer.ask({ kind: "line" });
  }

  put(...put: Parameters<Views["put"]>): Promise<void> {
    return this.#puts.put(loadOf(...put));
  }

  async doubt(nowMs: number): Promise<void> {
    await this.#puts.idle();
    await this.#threads.writer.ask({ kind: "doubt", nowMs });
  }

  async trust(): Promise<void> {
    await this.#puts.idle();
    await this.#threads.writer.ask({ kind: "trust" });
  }

  readonly holes: ViewsHoles = {
    read: async () => {
      await this.#puts.idle();
      return holesOf(await this.#threads.writer.ask({ kind: "holes" }));
    },
    write: async (ranges) => {
      await this.#puts.idle();
      await this.#threads.writer.ask({ kind: "set-holes", ranges: JSON.stringify(ranges) });
    },
    rebuild: async (why) => {
      await this.#puts.idle();
      await this.#threads.writer.ask({ kind: "rebuild", why });
    },
  };

  reached(): Promise<number> {
    return this.#threads.read({ kind: "reached" });
  }

  async get(jobId: string): Promise<JobRow> {
    const { json, position, holes } = await this.#threads.read({ kind: "get", jobId });
    return { job: json === null ? null : (parseJson(json) as Job), position, holes: holesOf(holes) };
  }

  async expired(nowMs: number, limit: number, after: ExpiredPlace | null = null): Promise<ExpiredJobs> {
    return await this.#threads.read({ kind: "expired", nowMs, limit, after });
  }

  async list(query: JobQuery): Promise<JobPage> {
    const stored = await this.#threads.read({ kind: "list", query });
    let page = this.#pages.get(stored);
    if (page === undefined) this.#pages.set(stored, (page = parsePage(stored)));
    return page;
  }

  async log(jobId: string, attempt: number, offset: number, bytesMax: number): Promise<JobLogPage> {
    return await this.#threads.read({ kind: "log", jobId, attempt, offset, bytesMax });
  }

  stats(): ViewsStats {
    return {
      putsWaiting: this.#puts.waiting,
      bytesInFlight: this.#puts.inFlightBytes,
      readsWaiting: this.#threads.readsWaiting,
      restarts: this.#threads.restarts,
    };
  }

  close(): Promise<void> {
    return this.#threads.close(() => this.#puts.idle());
  }

  /** As `onReset` of the options, from now on. */
  onReset(listener: () => void): void {
    this.#threads.onReset(listener);
  }
}

interface Cargo {
  readonly jobs: string[];
  readonly logs: JobLog[];
  readonly forgotten: string[];
}

function loadOf(
  position: number,
  jobs: readonly Job[],
  logs: readonly JobLog[],
  forgotten: readonly string[],
  { line = null, isPast = false, settles = false }: PutHow = {},
): Load<PutPiece, Cargo> {
  return {
    position,
    rows: rowsOf(jobs, logs, forgotten),
    empty: () => ({ jobs: [], logs: [], forgotten: [] }),
    pieceOf: (cargo, place) => ({
      kind: "put",
      position,
      line,
      isPast,
      settles: settles && place.isLast,
      ...cargo,
      ...place,
    }),
  };
}

function* rowsOf(
  jobs: readonly Job[],
  logs: readonly JobLog[],
  forgotten: readonly string[],
): Generator<(cargo: Cargo) => number, void, void> {
  for (const job of jobs) {
    yield (cargo) => {
      const json = JSON.stringify(job);
      cargo.jobs.push(json);
      return json.length;
    };
  }
  for (const log of logs) {
    yield (cargo) => {
      cargo.logs.push(log);
      return log.text.length;
    };
  }
  for (const jobId of forgotten) {
    yield (cargo) => {
      cargo.forgotten.push(jobId);
      return jobId.length;
    };
  }
}

async function parsePage({ jobs, next, position }: StoredPage): Promise<JobPage> {
  return { jobs: await parseJobs<Job>(jobs), next, position };
}

/** A page may be a megabyte: not at one stretch. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller says what the JSON is of
export async function parseJobs<T>(jsons: readonly string[]): Promise<T[]> {
  const jobs: T[] = [];
  let endsAtMs = performance.now() + TURN_MS_MAX;
  for (const json of jsons) {
    jobs.push(parseJson(json) as T);
    if (performance.now() < endsAtMs) continue;
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    endsAtMs = performance.now() + TURN_MS_MAX;
  }
  return jobs;
}

function holesOf(json: string | null): readonly ViewsHole[] {
  return json === null ? [] : (parseJson(json) as readonly ViewsHole[]);
}
