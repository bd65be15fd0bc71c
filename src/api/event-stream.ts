// GET /v1/events: each committed event once, in order, without gaps (trap 67), as server-sent events whose id is the sequence.
// A stream pulls: it reads the next page when the last one has found room, so a slow reader delays nobody and costs one page;
// one that does not read at all is cut, and goes on later with Last-Event-ID, here or elsewhere.
//
// A filter may pass over many events. `id:` without data moves the point from which a reader resumes and shows it nothing.

import { eventWire } from "../contract/index.ts";
import type { Events, EventsFilter, EventRecord } from "../ports/events.ts";
import type { Service, StreamAnswer } from "./handlers.ts";
import { everyNowAndThen } from "./admission.ts";
import { within } from "./pause.ts";
import type { Outlet } from "./stream.ts";

const PAGE_EVENTS_MAX = 500;
const PAGE_BYTES_MAX = 256 * 1024;
/** Frames that other streams will want too. */
const FRAMES_KEPT_LETTERS_MAX = 4 * 1024 * 1024;

export class EventStreams {
  readonly #service: Service;
  readonly #events: Events;
  readonly #frames = new Frames();

  constructor(service: Service, events: Events) {
    this.#service = service;
    this.#events = events;
  }

  /** Rejects with LOG_COMPACTED, or OVERLOADED, before anything is sent. */
  async open(after: number, filter: EventsFilter | null, isStillAdmitted: () => boolean): Promise<StreamAnswer> {
    const close = this.#service.streams.take();
    try {
      await this.#events.read(after, { filter: null, max: 1, bytesMax: 1 });
    } catch (error) {
      close();
      throw error;
    }
    return {
      contentType: "text/event-stream; charset=utf-8",
      headers: { "x-accel-buffering": "no" },
      abandoned: close,
      stream: (out) => this.#follow(after, filter, isStillAdmitted, out).finally(close),
    };
  }

  async #follow(
    start: number,
    filter: EventsFilter | null,
    isStillAdmitted: () => boolean,
    out: Outlet,
  ): Promise<void> {
    const { clock, limits } = this.#service;
    const wanted = { filter, max: PAGE_EVENTS_MAX, bytesMax: PAGE_BYTES_MAX };
    let after = start;
    let told = start;
    let toldAtMs = clock.monotonicMs();
    const isAdmitted = everyNowAndThen(clock, limits.heartbeatMs, isStillAdmitted);
    await out.write(`retry: 1000\nid: ${start}\n\n`);
    while (!out.signal.aborted) {
      const page = await this.#events.read(after, wanted);
      // Before what was read is shown: a stream may be busy for as long as its site is.
      if (!isAdmitted()) return;
      if (page.events.length > 0) {
        await out.write(page.events.map((event) => this.#frames.of(event)).join(""));
        told = page.events.at(-1)?.sequence ?? told;
        toldAtMs = clock.monotonicMs();
      }
      const isAtEnd = page.through === after;
      after = page.through;
      if (isAtEnd) await this.#arrived(after, Math.max(1, toldAtMs + limits.heartbeatMs - clock.monotonicMs()), out);
      if (clock.monotonicMs() - toldAtMs < limits.heartbeatMs) continue;
      await out.write(after === told ? ": heartbeat\n\n" : `: heartbeat\nid: ${after}\n\n`);
      told = after;
      toldAtMs = clock.monotonicMs();
    }
  }

  async #arrived(after: number, waitMs: number, out: Outlet): Promise<void> {
    const wait = within(this.#service.clock, waitMs, out.signal);
    await this.#events.arrived(after, wait.signal);
    wait.close();
  }
}

/** Made once for all streams that stand at about the same place. */
class Frames {
  readonly #kept = new Map<number, string>();
  #letters = 0;

  of(event: EventRecord): string {
    const { sequence, eventType, bytes, eventHash } = event;
    const kept = this.#kept.get(sequence);
    if (kept !== undefined) return kept;
    const data = JSON.stringify(eventWire(bytes, eventHash));
    const frame = `id: ${sequence}\nevent: ${eventType}\ndata: ${data}\n\n`;
    this.#kept.set(sequence, frame);
    this.#letters += frame.length;
    for (const [oldest, text] of this.#kept) {
      if (this.#letters <= FRAMES_KEPT_LETTERS_MAX) break;
      this.#kept.delete(oldest);
      this.#letters -= text.length;
    }
    return frame;
  }
}
