// mesh.sqlite (ports/mesh/views.ts) over two threads (thread-pair.ts). The main thread only copies bytes into one buffer for each piece and
// hands it over: the events are parsed, hashed and merged in the thread that writes.

import { existsSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { assert } from "../../../core/kit/assert.ts";
import { TenureError } from "../../../core/kit/errors.ts";
import type { ShownJob } from "../../../core/mesh/merge/shown-job.ts";
import type {
  ArrivedEvent,
  LineMark,
  MeshAgentPage,
  MeshAgentQuery,
  MeshCheckpoint,
  MeshEventPage,
  MeshEventQuery,
  MeshHash,
  MeshJobPage,
  MeshJobQuery,
  MeshPlace,
  MeshReplay,
  MeshViews,
  ReplayHow,
} from "../../../ports/mesh/views.ts";
import type { ControllerView } from "../../../ports/mesh/mesh.ts";
import { type Base, dropBase, keepBase, readBase } from "./base.ts";
import type {
  MeshPiece,
  MeshReadAnswers,
  MeshReadRequest,
  MeshWriterAnswers,
  MeshWriterRequest,
  PostedEvent,
  StoredCount,
  StoredHash,
} from "./messages.ts";
import { type Load, PutQueue } from "../put-queue.ts";
import { parseJobs } from "../sqlite-views.ts";
import { removeStore } from "../store.ts";
import { type PairOptions, ThreadPair } from "../thread-pair.ts";

/** As `openViews`: on a full disk too. */
export async function openMeshViews(options: PairOptions): Promise<MeshViews> {
  removeReplays(options.path);
  const views = new SqliteMesh(options);
  await views.open();
  return views;
}

const REPLAY = "replay-";

/** What a process that was killed in the middle of a replay has left: each is as large as the file itself, and the next process has another id. */
function removeReplays(path: string): void {
  const start = `${basename(path)}.${REPLAY}`;
  for (const name of readdirSync(dirname(path))) if (name.startsWith(start)) removeStore(join(dirname(path), name));
}

class SqliteMesh implements MeshViews {
  readonly #options: PairOptions;
  readonly #threads: ThreadPair<MeshWriterRequest, MeshWriterAnswers, MeshReadRequest, MeshReadAnswers>;
  readonly #puts: PutQueue<MeshPiece, Cargo>;
  #base: Base | null;
  #replays = 0;

  constructor(options: PairOptions) {
    this.#options = options;
    this.#base = readBase(options.path);
    this.#threads = new ThreadPair({ writer: "mesh-writer", reader: "mesh-reader", file: "the mesh's" }, options);
    const { writer } = this.#threads;
    this.#puts = new PutQueue({
      position: () => writer.ask({ kind: "position" }),
      put: (piece) => writer.ask(piece, [piece.buffer.buffer]),
    });
  }

  open(): Promise<void> {
    return this.#threads.open(() => this.through());
  }

  async through(): Promise<number> {
    let through = await this.#puts.position();
    // New, or made anew because the one before was lost, damaged or wrong.
    if (through === 0 && this.#base !== null && (await this.#adopt(this.#options.path, this.#base))) {
      through = await this.#puts.position();
      // Of another format, or of another cluster: it was moved aside.
      if (through === 0) this.#base = null;
    }
    this.#threads.opened();
    return through;
  }

  get savedThrough(): number | null {
    return this.#base?.through ?? null;
  }

  put(batch: readonly ArrivedEvent[]): Promise<void> {
    const last = batch.at(-1);
    return last === undefined ? Promise.resolve() : this.#puts.put(loadOf(batch, last.arrival));
  }

  async mark(line: string, mark: LineMark | null): Promise<void> {
    await this.#puts.idle();
    await this.#threads.writer.ask({ kind: "mark", line, mark });
  }

  lastOf(line: string): Promise<number> {
    return this.#threads.read({ kind: "last", line });
  }

  receiptOf(line: string, sequence: number): Promise<number | null> {
    return this.#threads.read({ kind: "receipt", line, sequence });
  }

  receiptPlace(receipt: number): Promise<MeshPlace | null> {
    return this.#threads.read({ kind: "receipt-place", receipt });
  }

  checkpointAfter(line: string, after: number): Promise<MeshCheckpoint | null> {
    return this.#threads.read({ kind: "checkpoint", line, after });
  }

  async jobs(query: MeshJobQuery): Promise<MeshJobPage> {
    const { jobs, lines, next, position } = await this.#threads.read({ kind: "list", query });
    const sources = new Map(lines);
    const shown = await parseJobs<ShownJob>(jobs);
    return { jobs: shown.map((job) => ({ ...job, ...sources.get(job.line)! })), next, through: position };
  }

  agents(query: MeshAgentQuery): Promise<MeshAgentPage> {
    return this.#threads.read({ kind: "agents", asked: query });
  }

  controllers(): Promise<readonly ControllerView[]> {
    return this.#threads.read({ kind: "controllers" });
  }

  events(query: MeshEventQuery): Promise<MeshEventPage> {
    return this.#threads.read({ kind: "events", asked: query });
  }

  async hash(): Promise<MeshHash> {
    const { hash, through, rows, missing } = await this.#hash();
    return { hash, through, rows, missing };
  }

  async replay(how: ReplayHow, arrivals: AsyncIterable<readonly ArrivedEvent[]>): Promise<MeshReplay> {
    const { from, saves, firstReceipt = 1 } = how;
    // Where that is refused now, the next replay does it.
    await this.#forget(firstReceipt).catch(onlyRefused);
    await this.#puts.idle();
    const live = await this.#count();
    const { rows, through, marks } = live;
    const path = this.#pathAside();
    const aside = new SqliteMesh({ ...this.#options, path, onReset: undefined });
    try {
      if (from === "saved") await this.#lend(aside);
      await aside.open();
      const events = await aside.#fill(arrivals, through);
      for (const [line, mark] of marks) await aside.mark(line, mark);
      const rebuilt = await aside.#count();
      const [hash, rebuiltHash] = compared(live, rebuilt);
      const equal = rebuiltHash === hash && rebuilt.rows === rows && rebuilt.through === through;
      // What was taken over from the saved state goes there too: otherwise it would go on from one saved state to the next, for ever.
      if (equal && saves) await aside.#forget(firstReceipt);
      await aside.close();
      if (equal && saves) await this.#keep(path, through);
      return { equal, events, hash, rebuiltHash, rows, rebuiltRows: rebuilt.rows };
    } finally {
      await aside.close();
      removeStore(path);
    }
  }

  async save(): Promise<void> {
    await this.#puts.idle();
    const path = this.#pathAside();
    try {
      await this.#keep(path, await this.#threads.read({ kind: "copy", to: path }));
    } finally {
      removeStore(path);
    }
  }

  async rebuild(reason: string, from: ReplayHow["from"]): Promise<void> {
    await this.#puts.idle();
    if (from === "nothing") this.#drop();
    await this.#threads.writer.ask({ kind: "discard", reason });
  }

  onReset(listener: () => void): void {
    this.#threads.onReset(listener);
  }

  close(): Promise<void> {
    return this.#threads.close(() => this.#puts.idle());
  }

  /** Up to `through`; returns how many there were. One batch at a time: nothing piles up. */
  async #fill(arrivals: AsyncIterable<readonly ArrivedEvent[]>, through: number): Promise<number> {
    let events = 0;
    for await (const batch of arrivals) {
      const wanted = batch.filter(({ arrival }) => arrival <= through);
      await this.put(wanted);
      events += wanted.length;
      if (wanted.length < batch.length) break;
    }
    return events;
  }

  /** A little at a time: puts go on between. */
  async #forget(before: number): Promise<void> {
    if (before <= 1) return;
    do await this.#puts.idle();
    while (await this.#threads.writer.ask({ kind: "forget", before }));
  }

  #pathAside(): string {
    const path = `${this.#options.path}.${REPLAY}${process.pid}-${++this.#replays}`;
    removeStore(path);
    return path;
  }

  /** To another one that is not opened yet. Throws where there is no saved state that can be used. */
  async #lend(aside: SqliteMesh): Promise<void> {
    const { path } = this.#options;
    if (this.#base !== null && (await aside.#adopt(path, this.#base))) return;
    this.#drop();
    throw new TenureError(
      "BACKEND_UNAVAILABLE",
      `The saved state of ${path} is lost or damaged: there is nothing to begin with.`,
    );
  }

  /** False: the saved state can't be used, now or ever. */
  async #adopt(of: string, base: Base): Promise<boolean> {
    const { logger } = this.#options;
    try {
      await this.#threads.writer.ask({ kind: "adopt", of, base });
      logger.info({ event: "mesh-views", through: base.through }, `the mesh's file goes on from ${base.file}`);
      return true;
    } catch (error) {
      if (!TenureError.is(error) || error.code !== "DISK_DAMAGED") throw error;
      logger.error({ event: "mesh-views", error: error.message }, "the saved state of the mesh's file can't be used");
      if (of === this.#options.path) this.#drop();
      return false;
    }
  }

  /** What was built at this path, and closed, is the saved state. */
  async #keep(from: string, through: number): Promise<void> {
    if (existsSync(`${from}-wal`)) {
      // Whoever waits for the saved state must not take this for one.
      const text = `what was built aside up to ${through} was not closed in time, and is not kept as the saved state.`;
      throw new TenureError("BACKEND_UNAVAILABLE", text);
    }
    this.#base = await keepBase(this.#options.path, from, through);
  }

  #drop(): void {
    this.#base = null;
    dropBase(this.#options.path);
  }

  #hash(): Promise<StoredHash> {
    return this.#threads.read({ kind: "hash" });
  }

  /** One at a time. */
  async #count(): Promise<StoredCount> {
    for (let isFirst = true; ; isFirst = false) {
      const counted = await this.#threads.read({ kind: "count", isFirst });
      if (counted !== null) return counted;
    }
  }
}

/** Of all hashes the first pair that differs: of the sums, of the rows themselves, of what is shown of them. */
function compared(live: StoredCount, rebuilt: StoredCount): readonly [string, string] {
  const pairs = (["hash", "counted", "shown"] as const).map((name) => [live[name], rebuilt[name]] as const);
  return pairs.find(([one, other]) => one !== other) ?? pairs[0]!;
}

function onlyRefused(error: unknown): void {
  if (!TenureError.is(error)) throw error;
}

interface Cargo {
  readonly events: PostedEvent[];
  readonly parts: Uint8Array[];
  length: number;
}

function loadOf(batch: readonly ArrivedEvent[], position: number): Load<MeshPiece, Cargo> {
  return {
    position,
    rows: rowsOf(batch),
    empty: () => ({ events: [], parts: [], length: 0 }),
    pieceOf: ({ events, parts, length }, place) => ({
      kind: "put",
      position,
      line: null,
      events,
      buffer: joined(parts, length),
      ...place,
    }),
  };
}

function* rowsOf(batch: readonly ArrivedEvent[]): Generator<(cargo: Cargo) => number, void, void> {
  let last = 0;
  for (const { event, checkpoint = null, ...place } of batch) {
    assert(place.arrival > last, "arrivals come in order", () => `${place.arrival} after ${last}`);
    last = place.arrival;
    yield (cargo) => {
      const isStub = !(event instanceof Uint8Array);
      const length = isStub ? 0 : event.length;
      cargo.events.push({ ...place, length, hash: isStub ? event.hash : null, checkpoint });
      if (!isStub) cargo.parts.push(event);
      cargo.length += length;
      return length + (checkpoint?.note.length ?? 0);
    };
  }
}

/** Into one buffer of its own: an event's bytes may be a part of a large slab, which would be copied as a whole. */
function joined(parts: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const buffer = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    buffer.set(part, at);
    at += part.length;
  }
  return buffer;
}
