// mesh.sqlite (ports/mesh/views.ts) over two threads (thread-pair.ts). The main thread only copies bytes into one buffer for each piece and
// hands it over: the events are parsed, hashed and merged in the thread that writes.

import { assert } from "../../../core/kit/assert.ts";
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
} from "../../../ports/mesh/views.ts";
import type { ControllerView } from "../../../ports/mesh/mesh.ts";
import type {
  MeshPiece,
  MeshReadAnswers,
  MeshReadRequest,
  MeshWriterAnswers,
  MeshWriterRequest,
  PostedEvent,
  StoredHash,
} from "./messages.ts";
import { type Load, PutQueue } from "../put-queue.ts";
import { parseJobs } from "../sqlite-views.ts";
import { removeStore } from "../store.ts";
import { type PairOptions, ThreadPair } from "../thread-pair.ts";

/** As `openViews`: on a full disk too. */
export async function openMeshViews(options: PairOptions): Promise<MeshViews> {
  const views = new SqliteMesh(options);
  await views.open();
  return views;
}

class SqliteMesh implements MeshViews {
  readonly #options: PairOptions;
  readonly #threads: ThreadPair<MeshWriterRequest, MeshWriterAnswers, MeshReadRequest, MeshReadAnswers>;
  readonly #puts: PutQueue<MeshPiece, Cargo>;
  #replays = 0;

  constructor(options: PairOptions) {
    this.#options = options;
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
    const through = await this.#puts.position();
    this.#threads.opened();
    return through;
  }

  put(batch: readonly ArrivedEvent[]): Promise<void> {
    const last = batch.at(-1);
    return last === undefined ? Promise.resolve() : this.#puts.put(loadOf(batch, last.arrival));
  }

  async mark(line: string, mark: LineMark | null): Promise<void> {
    await this.#puts.idle();
    await this.#threads.writer.ask({ kind: "mark", line, mark });
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

  async replay(arrivals: AsyncIterable<readonly ArrivedEvent[]>): Promise<MeshReplay> {
    await this.#puts.idle();
    const { hash, rows, through, marks } = await this.#hash();
    const path = `${this.#options.path}.replay-${process.pid}-${++this.#replays}`;
    removeStore(path);
    const aside = new SqliteMesh({ ...this.#options, path, onReset: undefined });
    try {
      await aside.open();
      const events = await aside.#fill(arrivals, through);
      for (const [line, mark] of marks) await aside.mark(line, mark);
      const rebuilt = await aside.#hash();
      const equal = rebuilt.hash === hash && rebuilt.rows === rows && rebuilt.through === through;
      return { equal, events, hash, rebuiltHash: rebuilt.hash, rows, rebuiltRows: rebuilt.rows };
    } finally {
      await aside.close();
      removeStore(path);
    }
  }

  async rebuild(reason: string): Promise<void> {
    await this.#puts.idle();
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

  #hash(): Promise<StoredHash> {
    return this.#threads.read({ kind: "hash" });
  }
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
