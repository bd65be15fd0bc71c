// Brings new events to all streams that have caught up, a little at a time: an append concerns every one of them, and a
// thousand writes at once would hold the loop for longer than design D10 allows.
//
//   follow ─▶ due ─a page is written─▶ due ─nothing more─▶ idle ─an event, or a heartbeat is due─▶ due
//              └─▶ left: "over" (gone, or not admitted any more) · "full" (no room: wait) · "history" (not in memory: read it)
//
// Invariants:
// - A slice ends when its time is over, whoever is due; the others come in the next one, in order. So every stream is served
//   as often as any other, and one that is due is served after at most all others were served once.
// - Pages are shared: streams at one place with one filter are sent the same bytes.
// - A stream's place moves with what was written to it and nothing else: it sees each event once, in order (trap 67).

import type { Clock, Timer } from "../../ports/clock.ts";
import type { Events, EventsFilter } from "../../ports/events.ts";
import { FAN_REST_MS, FAN_SLICE_MS_MAX } from "../limits.ts";
import { type EventPages, pointLines } from "./event-pages.ts";
import type { Outlet } from "./stream.ts";

export interface FannedStream {
  readonly filter: EventsFilter | null;
  readonly filterKey: string;
  readonly isChained: boolean;
  readonly out: Outlet;
  readonly isAdmitted: () => boolean;
  /** Everything up to here was looked at for it. */
  after: number;
  /** Of that event; null: there is none, or none yet. */
  hash: string | null;
  /** The id that its reader knows. */
  shownId: number;
  shownAtMs: number;
}

export type Left = "over" | "full" | "history";

export interface EventFanOptions {
  readonly clock: Clock;
  readonly heartbeatMs: number;
  readonly events: Pick<Events, "head" | "arrived">;
  readonly pages: Pick<EventPages, "recent">;
}

interface Member {
  readonly stream: FannedStream;
  readonly leave: (why: Left) => void;
  readonly fail: (error: unknown) => void;
  isIn: boolean;
}

export class EventFan {
  readonly #options: EventFanOptions;
  readonly #encoder = new TextEncoder();
  #members = 0;
  #due: Member[] = [];
  #nextDue = 0;
  readonly #idle = new Set<Member>();
  /** Ends the wait for events; null while nobody is in. */
  #watch: AbortController | null = null;
  /** The last event that idle streams were woken for. */
  #seen = 0;
  #slice: Timer | null = null;
  #beat: Timer | null = null;
  #beatAtMs = Infinity;

  constructor(options: EventFanOptions) {
    this.#options = options;
  }

  /** Brings it all that comes. Resolves when it can't go on here; rejects where there is nobody to write to. */
  follow(stream: FannedStream): Promise<Left> {
    return new Promise((resolve, reject) => {
      const { signal } = stream.out;
      const over = (): void => member.leave("over");
      const ended = (): void => {
        if (!member.isIn) return;
        member.isIn = false;
        signal.removeEventListener("abort", over);
        this.#idle.delete(member);
        this.#members--;
        if (this.#members === 0) this.#rest();
      };
      const member: Member = {
        stream,
        isIn: true,
        leave: (why) => {
          ended();
          resolve(why);
        },
        fail: (error) => {
          ended();
          reject(error);
        },
      };
      this.#members++;
      if (signal.aborted) return over();
      signal.addEventListener("abort", over, { once: true });
      this.#due.push(member);
      this.#begin();
    });
  }

  /** All that are in leave: "over". */
  endAll(): void {
    for (const { leave } of [...this.#idle, ...this.#due.slice(this.#nextDue)]) leave("over");
  }

  #begin(): void {
    if (this.#watch === null) {
      this.#watch = new AbortController();
      void this.#follow(this.#watch.signal);
    }
    this.#soon();
  }

  /** Nobody is in. */
  #rest(): void {
    this.#watch?.abort("over");
    this.#watch = null;
    this.#slice?.cancel();
    this.#slice = null;
    this.#beat?.cancel();
    this.#beat = null;
    this.#beatAtMs = Infinity;
    this.#due = [];
    this.#nextDue = 0;
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { events } = this.#options;
    this.#seen = events.head().sequence;
    while (!signal.aborted) {
      await events.arrived(this.#seen, signal);
      if (signal.aborted) return;
      this.#seen = events.head().sequence;
      for (const member of this.#idle) this.#due.push(member);
      this.#idle.clear();
      this.#soon();
    }
  }

  /** In a turn of its own: whatever made somebody due is not held up by it. */
  #soon(inMs = 0): void {
    if (this.#slice !== null || this.#nextDue === this.#due.length) return;
    const { clock } = this.#options;
    this.#slice = clock.setTimer(clock.monotonicMs() + inMs, () => {
      this.#slice = null;
      this.#serve();
    });
  }

  #serve(): void {
    const { clock } = this.#options;
    const endsAtMs = clock.monotonicMs() + FAN_SLICE_MS_MAX;
    while (this.#nextDue < this.#due.length) {
      const member = this.#due[this.#nextDue++]!;
      if (member.isIn) this.#step(member);
      if (clock.monotonicMs() >= endsAtMs) break;
    }
    if (this.#nextDue >= this.#due.length / 2) {
      this.#due = this.#due.slice(this.#nextDue);
      this.#nextDue = 0;
    }
    this.#soon(FAN_REST_MS);
  }

  /** One page for one stream. What goes wrong is its own affair. */
  #step(member: Member): void {
    try {
      const left = this.#write(member.stream);
      if (left !== null) return member.leave(left);
    } catch (error) {
      return member.fail(error);
    }
    if (member.stream.after < this.#seen) return void this.#due.push(member);
    this.#idle.add(member);
    this.#armBeat(member.stream.shownAtMs + this.#options.heartbeatMs);
  }

  /** Null: it goes on here. */
  #write(stream: FannedStream): Left | null {
    const { clock, heartbeatMs, pages } = this.#options;
    const page = pages.recent(stream.after, stream);
    // Before anything is shown: a stream may be busy for as long as its site is.
    if (!stream.isAdmitted()) return "over";
    let hasRoom = true;
    if (page !== null) {
      stream.after = page.through;
      stream.hash = page.hash ?? stream.hash;
      if (page.bytes !== null) {
        hasRoom = stream.out.push(page.bytes);
        stream.shownId = page.last;
        stream.shownAtMs = clock.monotonicMs();
      }
    }
    // The same sum as in #dueForBeats: rounded differently, a stream is due by one and not by the other, and nothing rests.
    if (clock.monotonicMs() >= stream.shownAtMs + heartbeatMs) {
      hasRoom = stream.out.push(this.#encoder.encode(heartbeatOf(stream)));
      stream.shownId = stream.after;
      stream.shownAtMs = clock.monotonicMs();
    }
    if (!hasRoom) return "full";
    return page === null ? "history" : null;
  }

  /** One timer for all: whoever is due first. */
  #armBeat(atMs: number): void {
    if (atMs >= this.#beatAtMs) return;
    this.#beat?.cancel();
    this.#beatAtMs = atMs;
    this.#beat = this.#options.clock.setTimer(atMs, () => {
      this.#beat = null;
      this.#beatAtMs = Infinity;
      this.#dueForBeats();
    });
  }

  #dueForBeats(): void {
    const { clock, heartbeatMs } = this.#options;
    const nowMs = clock.monotonicMs();
    let nextMs = Infinity;
    for (const member of this.#idle) {
      const atMs = member.stream.shownAtMs + heartbeatMs;
      if (atMs > nowMs) {
        nextMs = Math.min(nextMs, atMs);
        continue;
      }
      this.#idle.delete(member);
      this.#due.push(member);
    }
    this.#armBeat(nextMs);
    this.#soon();
  }
}

/** A filter may pass over many events: an id without data moves the point from which a reader resumes, and shows nothing. */
function heartbeatOf({ after, hash, shownId, isChained }: FannedStream): string {
  if (after === shownId) return ": heartbeat\n\n";
  return `: heartbeat\n${pointLines({ sequence: after, hash }, isChained)}\n`;
}
