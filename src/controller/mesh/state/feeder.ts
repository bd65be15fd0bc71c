// Feeds what the mesh shows (ports/mesh/views.ts) with everything that arrives at this site, own and foreign, in the order of arrival.
//
//   beginning: how far are the views? ──▶ feeding ──a put fails, a snapshot is restored, the views are lost──▶ beginning
//
// Feeding: one put is under way at a time. What comes next is in memory where it was applied a moment ago (feeder-tail.ts), otherwise it is read
// from the two archives (arrivals.ts); so a start, a wiped file, an overflow and a restored snapshot are one and the same case.
//
// Invariants:
// - A put follows another after FEED_GATHER_MS, or when it is full.
// - The views get each arrival once, in order. What no archive keeps any more is passed over, and the views count it.
// - An own event waits until the ring of its generation is written: before that its line has no name.
// - Views that have more than a leader has applied are of a history that is gone, as of a disk that was restored without them: they are built anew.
// - Own events that turn out to be of the next line are put again, under its name; but nothing is given up for it that the archives do not have.
// - Marks of lines (forked, evicted) are those of the registry: set again at each beginning, and whenever the registry changes.

import { TenureError } from "../../../core/kit/errors.ts";
import type { SealedEvent } from "../../../core/events/index.ts";
import type { LineId, LineState } from "../../../core/mesh/model.ts";
import { controllerOf } from "../../../core/mesh/proof/index.ts";
import { newEvents, type SealedReceipt } from "../../../core/mesh/receipts/index.ts";
import type { KnownSite } from "../../../core/mesh/registry/index.ts";
import { sleep } from "../../../loops/time.ts";
import type { Clock, Timer } from "../../../ports/clock.ts";
import type { Logger } from "../../../ports/logger.ts";
import type { ArrivedEvent, LineMark, MeshViews } from "../../../ports/mesh/views.ts";
import { type Arrived, arrivals, type ArrivalSources, firstArrivalKept, foreignOf } from "../receipts/arrivals.ts";
import { FeederTail } from "./feeder-tail.ts";
import { FEED_GATHER_MS, FEED_PUT_MAX, FEED_RETRY_MS } from "../limits.ts";
import type { OwnLineFold } from "../own/own-line-fold.ts";
import { ownPlaceOf } from "./own-lines-of.ts";

export interface MeshFeederOptions extends ArrivedNames {
  readonly journal: {
    follow(tell: (sealed: SealedEvent) => void): () => void;
    onRestored(tell: () => void): () => void;
  };
  readonly receipts: ArrivedNames["receipts"] & {
    readonly state: { lines(): Iterable<LineState> };
    /** The arrival number of the last event that is applied. */
    readonly arrival: number;
    follow(tell: (applied: SealedReceipt) => void): () => void;
    onRestored(tell: () => void): () => void;
  };
  readonly controllers: {
    readonly registry: { sites(): readonly KnownSite[]; forkOf(line: LineId): number | undefined };
    onChanged(listener: () => void): void;
  };
  readonly archives: ArrivalSources;
  readonly views: Pick<MeshViews, "through" | "put" | "mark" | "lastOf" | "savedThrough" | "rebuild" | "onReset">;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What names the lines of arrivals. */
export interface ArrivedNames {
  readonly ownLine: Pick<OwnLineFold, "lines">;
  readonly receipts: { readonly state: { line(id: LineId): LineState | undefined; readonly foreign: number } };
}

export class MeshFeeder {
  readonly #options: MeshFeederOptions;
  readonly #tail = new FeederTail();
  readonly #stops: readonly (() => void)[];
  #reading: { readonly batches: AsyncGenerator<readonly Arrived[]>; next: number } | null = null;
  #through = 0;
  #putAtMs = -Infinity;
  #marks = new Map<LineId, LineMark | null>();
  #isMarkDue = true;
  #isPlaceDue = true;
  /** The saved state has them in the wrong place, too. */
  #hasTriedSaved = false;
  /** Everything that was committed before is applied here. */
  #isCaughtUp = false;
  /** Grows with each beginning: what was under way then is not gone on with. */
  #beginnings = 0;
  #isBeginning = true;
  #isFeeding = false;
  #retry: Timer | null = null;
  #isClosed = false;

  constructor(options: MeshFeederOptions) {
    const { journal, receipts, controllers, views } = options;
    this.#options = options;
    this.#stops = [
      journal.follow((sealed) => this.#applied(sealed)),
      receipts.follow((sealed) => this.#received(sealed)),
      journal.onRestored(() => this.#restored()),
      receipts.onRestored(() => this.#restored()),
    ];
    controllers.onChanged(() => {
      this.#isMarkDue = true;
      this.#feedSoon();
    });
    views.onReset(() => this.restart());
    void this.#begin();
  }

  /** Up to here the views have everything, as far as it is known here. */
  get through(): number {
    return this.#through;
  }

  /** Arrivals that the views do not have yet. */
  get lag(): number {
    return Math.max(0, this.#options.receipts.arrival - this.#through);
  }

  /** The views have lost what they had, or a part of it. */
  restart(): void {
    if (!this.#isClosed && this.#retry === null) void this.#begin();
  }

  /** This node leads, so that everything that was committed before is applied here. */
  caughtUp(): void {
    this.#isCaughtUp = true;
    this.#feedSoon();
  }

  close(): void {
    this.#isClosed = true;
    for (const stop of this.#stops) stop();
    this.#retry?.cancel();
    this.#endReading();
  }

  #applied({ event: { sequence, eventType }, bytes }: SealedEvent): void {
    if (eventType === "controller:recovered") this.#isPlaceDue = true;
    const arrival = sequence + this.#options.receipts.state.foreign;
    this.#tail.push([{ arrival, line: null, lineSequence: sequence, receipt: null, bytes }]);
    this.#feedSoon();
  }

  #received({ receipt }: SealedReceipt): void {
    this.#tail.push(foreignOf(receipt, receipt.own + receipt.foreign + 1));
    this.#feedSoon();
  }

  /** What was between is in the archives, or is fetched into them. */
  #restored(): void {
    this.#tail.clear();
    this.restart();
  }

  async #begin(): Promise<void> {
    const beginning = ++this.#beginnings;
    this.#isBeginning = true;
    this.#putAtMs = -Infinity;
    this.#endReading();
    try {
      const through = await this.#options.views.through();
      if (beginning !== this.#beginnings || this.#isClosed) return;
      this.#through = through;
      this.#marks = new Map();
      this.#isMarkDue = true;
      this.#isPlaceDue = true;
      this.#isBeginning = false;
      this.#feedSoon();
    } catch (error) {
      if (beginning === this.#beginnings) this.#failed(error);
    }
  }

  #feedSoon(): void {
    if (this.#isBeginning || this.#isFeeding || this.#isClosed || this.#retry !== null) return;
    this.#isFeeding = true;
    void Promise.resolve().then(() => this.#feed());
  }

  async #feed(): Promise<void> {
    const beginning = this.#beginnings;
    let isAgain = true;
    try {
      while (isAgain && !this.#isClosed && beginning === this.#beginnings) {
        if (this.#isCaughtUp && this.#through > this.#options.receipts.arrival) await this.#dropAhead();
        else if (this.#isPlaceDue) await this.#placeOwn();
        if (beginning !== this.#beginnings) break;
        if (this.#isMarkDue) await this.#mark();
        if (await this.#gathered()) continue;
        isAgain = (this.lag > 0 && (await this.#putNext(beginning))) || this.#isMarkDue;
      }
      this.#isFeeding = false;
      if (beginning !== this.#beginnings) this.#feedSoon();
    } catch (error) {
      this.#isFeeding = false;
      if (beginning === this.#beginnings) this.#failed(error);
      else this.#feedSoon();
    }
  }

  /** The first of several is put at once, and those that follow it soon together. True: it waited, and much may have changed. */
  async #gathered(): Promise<boolean> {
    const { clock } = this.#options;
    const restMs = this.#putAtMs + FEED_GATHER_MS - clock.monotonicMs();
    // What is read from the archives is late already.
    const waits = restMs > 0 && this.#tail.has(this.#through + 1) && this.#tail.size < FEED_PUT_MAX;
    if (waits) await sleep(clock, restMs);
    return waits;
  }

  /** False: what comes next has no name yet. Whatever is applied next begins again. */
  async #putNext(beginning: number): Promise<boolean> {
    const { views, clock } = this.#options;
    const next = this.#through + 1;
    const batch = this.#tail.has(next) ? this.#tail.from(next, FEED_PUT_MAX) : await this.#read(next);
    if (beginning !== this.#beginnings || batch.length === 0) return true;
    const { events, through } = named(batch, this.#options, clock.wallMs());
    if (through < next) {
      this.#endReading();
      return false;
    }
    if (through < batch.at(-1)!.arrival) this.#endReading();
    await views.put(events);
    this.#putAtMs = clock.monotonicMs();
    if (beginning !== this.#beginnings) return true;
    this.#through = through;
    this.#tail.dropThrough(through);
    return true;
  }

  /** The next of the archives; empty: ask again. */
  async #read(next: number): Promise<readonly Arrived[]> {
    const { archives, logger } = this.#options;
    if (this.#reading?.next !== next) {
      this.#endReading();
      this.#reading = { batches: arrivals(archives, next), next };
    }
    const reading = this.#reading;
    try {
      const step = await reading.batches.next();
      if (step.done !== true) {
        reading.next += step.value.length;
        return step.value;
      }
    } catch (error) {
      if (reading === this.#reading) this.#endReading();
      if (!TenureError.is(error) || error.code !== "LOG_COMPACTED") throw error;
      const first = await firstArrivalKept(archives);
      if (first <= next) throw error;
      const text = "the mesh's views go on without arrivals that are not kept any more";
      logger.warn({ event: "mesh-views", first: next, last: first - 1 }, text);
      this.#through = first - 1;
      return [];
    }
    if (reading === this.#reading) this.#endReading();
    if (this.#tail.has(next) || this.lag === 0) return [];
    throw new TenureError("BACKEND_UNAVAILABLE", `What arrived as ${next} is not in the archives of this node yet.`);
  }

  #endReading(): void {
    void this.#reading?.batches.return(undefined);
    this.#reading = null;
  }

  /** Puts go on after what is applied here, where what is shown can't be built anew. */
  async #dropAhead(): Promise<void> {
    const { views, archives, receipts, logger } = this.#options;
    const ahead = { through: this.#through, arrival: receipts.arrival };
    const reason = `the mesh's views have ${ahead.through} arrivals, and ${ahead.arrival} have arrived: they are of another history`;
    const isSaved = views.savedThrough !== null && views.savedThrough <= ahead.arrival;
    if (isSaved || (await firstArrivalKept(archives)) <= 1) return views.rebuild(reason, isSaved ? "saved" : "nothing");
    this.#isCaughtUp = false;
    logger.warn(
      { event: "mesh-views", ...ahead },
      `${reason}. What is shown from before the archives begin can't be built anew`,
    );
  }

  /** An own line may have ended earlier than its events were shown (`mesh resume --new-line`): those are of the next line, and shown anew. */
  async #placeOwn(): Promise<void> {
    const { views, ownLine, archives, logger } = this.#options;
    this.#isPlaceDue = false;
    try {
      for (const { line, end } of ownLine.lines?.generations ?? []) {
        if (end === null || (await views.lastOf(line)) <= end.through) continue;
        const isSaved = views.savedThrough !== null && !this.#hasTriedSaved;
        const reason = `the own line ${line} has ended with ${end.through}: what was written since is of the next one`;
        if (!isSaved && (await firstArrivalKept(archives)) > 1) {
          const text = `${reason}. It is shown where it was: what is shown of all sites from before the archives begin can't be built anew`;
          return logger.warn({ event: "mesh-views", line, through: end.through }, text);
        }
        this.#hasTriedSaved = isSaved;
        return await views.rebuild(reason, isSaved ? "saved" : "nothing");
      }
      this.#hasTriedSaved = false;
    } catch (error) {
      this.#isPlaceDue = true;
      throw error;
    }
  }

  async #mark(): Promise<void> {
    const { views } = this.#options;
    this.#isMarkDue = false;
    const marks = this.#marks;
    try {
      for (const [line, mark] of this.#marksOfRegistry()) {
        if (marks.get(line) === mark) continue;
        await views.mark(line, mark);
        marks.set(line, mark);
      }
    } catch (error) {
      this.#isMarkDue = true;
      throw error;
    }
  }

  *#marksOfRegistry(): Generator<readonly [LineId, LineMark | null]> {
    const { controllers, receipts } = this.#options;
    const { registry } = controllers;
    const markOf = (line: LineId, isEvicted: boolean): LineMark | null =>
      registry.forkOf(line) !== undefined ? "forked" : isEvicted ? "evicted" : null;
    const [known, evicted] = [new Set<LineId>(), new Set<string>()];
    for (const { id, lines, isEvicted } of registry.sites()) {
      if (isEvicted) evicted.add(id);
      for (const { line } of lines) {
        known.add(line);
        yield [line, markOf(line, isEvicted)];
      }
    }
    // Of a site that has had more generations than the registry remembers, the older lines are shown still. Those of this moment: others may come meanwhile.
    const received = [...receipts.state.lines()];
    for (const { line } of received) {
      if (!known.has(line)) yield [line, markOf(line, evicted.has(controllerOf(line)))];
    }
  }

  #failed(error: unknown): void {
    if (this.#isClosed) return;
    const { clock, logger } = this.#options;
    const text = "the mesh's views could not be fed; trying again from where they are";
    logger.warn({ event: "mesh-views", error: String(error) }, text);
    this.#retry = clock.setTimer(clock.monotonicMs() + FEED_RETRY_MS, () => {
      this.#retry = null;
      void this.#begin();
    });
  }
}

/** Every arrival from this one on, as the views take them; ends where an own event has no line yet. */
export async function* arrivedEvents(
  archives: ArrivalSources,
  from: number,
  names: ArrivedNames,
  signal: AbortSignal,
): AsyncGenerator<readonly ArrivedEvent[]> {
  for await (const batch of arrivals(archives, from)) {
    signal.throwIfAborted();
    const { events, through } = named(batch, names, 0);
    yield events;
    if (batch.length > 0 && through < batch.at(-1)!.arrival) return;
  }
}

/** Up to the first that has no name yet. `nowMs`: when an own event is taken; the own line is never old. */
function named(
  batch: readonly Arrived[],
  { ownLine, receipts }: ArrivedNames,
  nowMs: number,
): { readonly events: readonly ArrivedEvent[]; readonly through: number } {
  const events: ArrivedEvent[] = [];
  let through = batch[0]!.arrival - 1;
  for (const arrived of batch) {
    const { arrival, lineSequence, line, receipt } = arrived;
    const event = "bytes" in arrived ? arrived.bytes : { hash: arrived.hash };
    if (line === null || receipt === null) {
      const place = ownPlaceOf(ownLine.lines, lineSequence);
      if (place.kind === "unnamed") break;
      if (place.kind === "in") {
        const { line: own, generation } = place;
        events.push({ arrival, line: own, generation, lineSequence, event, receipt: null, arrivedMs: nowMs });
      }
    } else {
      const generation = receipts.state.line(line)?.ring.generation ?? 1;
      const { page } = receipt;
      const isLast = lineSequence === receipt.first + newEvents(receipt) - 1;
      const checkpoint = isLast ? { after: page.after, note: page.checkpoint } : undefined;
      const came = { receipt: receipt.sequence, arrivedMs: receipt.timestamp, checkpoint };
      events.push({ arrival, line, generation, lineSequence, event, ...came });
    }
    through = arrival;
  }
  return { events, through };
}
