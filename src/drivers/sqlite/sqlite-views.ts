// The views (ports/views.ts) over two threads: one writes, one reads. The main thread converts jobs to JSON and back, a
// little at a time, and otherwise only posts and waits (design D10).
//
// Two threads, because Node's SQLite can't be interrupted: with one, a put would wait for whatever is being searched.

import type { Job } from "../../core/jobs/model.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { parseJson } from "../../core/kit/parse-json.ts";
import type { Logger } from "../../ports/logger.ts";
import type {
  ExpiredJobs,
  ExpiredPlace,
  JobLogPage,
  JobPage,
  JobQuery,
  JobRow,
  Views,
  ViewsHole,
  ViewsHoles,
} from "../../ports/views.ts";
import { VIEWS_CLOSE_MS_MAX, TURN_MS_MAX } from "./limits.ts";
import type { Answers, ReaderRequest, StoredPage, WriterRequest } from "./messages.ts";
import { PutQueue } from "./put-queue.ts";
import { type ReadKind, ReadQueue } from "./read-queue.ts";
import { Thread } from "./thread.ts";

export interface ViewsOptions {
  /** Of the file; `-wal`, `-shm` and files that were moved aside lie beside it. */
  readonly path: string;
  /** A file of another cluster is moved aside. */
  readonly clusterId: string;
  readonly logger: Logger;
  /** What was kept is gone, or the writer died: ask for the position and feed from there. */
  readonly onReset?: (() => void) | undefined;
}

export interface ViewsStats {
  readonly putsWaiting: number;
  readonly bytesInFlight: number;
  readonly readsWaiting: number;
  readonly restarts: number;
}

/** Resolves on a full disk too: the server has to start, and puts are refused until there is room. */
export async function openViews(options: ViewsOptions): Promise<SqliteViews> {
  const views = new SqliteViews(options);
  try {
    await views.position();
  } catch (error) {
    if (TenureError.is(error) && error.code === "DISK_FULL") {
      options.logger.error({ path: options.path }, error.message);
    } else {
      await views.close();
      throw error;
    }
  }
  return views;
}

export class SqliteViews implements Views {
  readonly #options: ViewsOptions;
  readonly #resets: (() => void)[] = [];
  readonly #writer: Thread<WriterRequest>;
  readonly #reader: Thread<ReaderRequest>;
  readonly #puts: PutQueue;
  readonly #reads: ReadQueue;
  /** Of pages that several asked for: parsed once. */
  readonly #pages = new WeakMap<StoredPage, Promise<JobPage>>();
  #isOpen = false;
  #closed: Promise<void> | null = null;

  constructor(options: ViewsOptions) {
    const { path, clusterId, logger } = options;
    const common = { store: { path, clusterId }, logger };
    this.#options = options;
    if (options.onReset !== undefined) this.#resets.push(options.onReset);
    this.#writer = new Thread<WriterRequest>({
      ...common,
      name: "writer",
      onReplaced: (aside, reason) => this.#onReplaced(aside, reason),
      onRestarted: () => this.#reset(),
    });
    this.#reader = new Thread<ReaderRequest>({
      ...common,
      name: "reader",
      onReplaced: () => undefined,
      onRestarted: () => undefined,
    });
    this.#puts = new PutQueue(this.#writer);
    this.#reads = new ReadQueue(this.#reader);
  }

  async position(): Promise<number> {
    const position = await this.#puts.position();
    this.#isOpen = true;
    return position;
  }

  async line(): Promise<string | null> {
    await this.#puts.idle();
    return this.#writer.ask({ kind: "line" });
  }

  put(...put: Parameters<Views["put"]>): Promise<void> {
    return this.#puts.put(...put);
  }

  async doubt(nowMs: number): Promise<void> {
    await this.#puts.idle();
    await this.#writer.ask({ kind: "doubt", nowMs });
  }

  async trust(): Promise<void> {
    await this.#puts.idle();
    await this.#writer.ask({ kind: "trust" });
  }

  readonly holes: ViewsHoles = {
    read: async () => {
      await this.#puts.idle();
      return holesOf(await this.#writer.ask({ kind: "holes" }));
    },
    write: async (ranges) => {
      await this.#puts.idle();
      await this.#writer.ask({ kind: "set-holes", ranges: JSON.stringify(ranges) });
    },
    rebuild: async (why) => {
      await this.#puts.idle();
      await this.#writer.ask({ kind: "rebuild", why });
    },
  };

  reached(): Promise<number> {
    return this.#read({ kind: "reached" });
  }

  async get(jobId: string): Promise<JobRow> {
    const { json, position, holes } = await this.#read({ kind: "get", jobId });
    return { job: json === null ? null : (parseJson(json) as Job), position, holes: holesOf(holes) };
  }

  async expired(nowMs: number, limit: number, after: ExpiredPlace | null = null): Promise<ExpiredJobs> {
    return await this.#read({ kind: "expired", nowMs, limit, after });
  }

  async list(query: JobQuery): Promise<JobPage> {
    const stored = await this.#read({ kind: "list", query });
    let page = this.#pages.get(stored);
    if (page === undefined) this.#pages.set(stored, (page = parsePage(stored)));
    return page;
  }

  async log(jobId: string, attempt: number, offset: number, bytesMax: number): Promise<JobLogPage> {
    return await this.#read({ kind: "log", jobId, attempt, offset, bytesMax });
  }

  stats(): ViewsStats {
    return {
      putsWaiting: this.#puts.waiting,
      bytesInFlight: this.#puts.inFlightBytes,
      readsWaiting: this.#reads.waiting,
      restarts: this.#writer.restarts + this.#reader.restarts,
    };
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const drained = this.#puts
      .idle()
      // The reader first: the last connection that is closed tidies up the WAL.
      .then(() => this.#reader.close({ kind: "close" }).catch(() => undefined))
      .then(() => this.#writer.close({ kind: "close" }))
      .catch(() => undefined);
    const { promise: late, resolve: isLate } = Promise.withResolvers<void>();
    const timer = setTimeout(isLate, VIEWS_CLOSE_MS_MAX);
    await Promise.race([drained, late]);
    clearTimeout(timer);
    await Promise.all([this.#reader.end(), this.#writer.end()]);
  }

  async #read<K extends ReadKind>(request: Extract<ReaderRequest, { kind: K }>): Promise<Answers[K]> {
    try {
      return await this.#reads.ask(request);
    } catch (error) {
      if (TenureError.is(error) && error.code === "DISK_DAMAGED") this.#discard(error.message);
      throw error;
    }
  }

  /** The reader has come upon damage before the writer did. */
  #discard(reason: string): void {
    if (!this.#isOpen) return;
    // So that reads that wait behind this one and find the same do not discard the new file too.
    this.#isOpen = false;
    this.#writer.ask({ kind: "discard", reason }).catch(() => undefined);
  }

  #onReplaced(aside: string | null, reason: string): void {
    const { logger, path } = this.#options;
    if (this.#reader.isStarted) this.#reader.ask({ kind: "reopen" }).catch(() => undefined);
    if (aside === null) {
      logger.warn({ path, reason }, "the views' file was removed and is built anew");
      return;
    }
    logger.error(
      { path, aside, reason },
      "the views' file was moved aside and is built anew from snapshot and archive",
    );
    this.#reset();
  }

  /** As `onReset` of the options, from now on. */
  onReset(listener: () => void): void {
    this.#resets.push(listener);
  }

  #reset(): void {
    for (const listener of this.#resets) listener();
  }
}

async function parsePage({ jobs, next, position }: StoredPage): Promise<JobPage> {
  return { jobs: await parseJobs(jobs), next, position };
}

/** A page may be a megabyte: not at one stretch. */
async function parseJobs(jsons: readonly string[]): Promise<Job[]> {
  const jobs: Job[] = [];
  let endsAtMs = performance.now() + TURN_MS_MAX;
  for (const json of jsons) {
    jobs.push(parseJson(json) as Job);
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
