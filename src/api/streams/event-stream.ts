// GET /v1/events: each committed event once, in order, without gaps (trap 67), as server-sent events whose id is the sequence.
// A stream that has caught up is served by the fan (event-fan.ts), together with all others; what is in memory no more it
// reads itself, page by page, each when the last one has found room. So a slow reader delays nobody and costs one page; one
// that does not read at all is cut, and goes on later with Last-Event-ID, here or elsewhere. Where this node has taken over another
// state, every stream ends: its reader resumes with the hash that it has, and gets HISTORY_REWRITTEN if that is of no history any more (trap 82).

import type { Events, EventsFilter } from "../../ports/events.ts";
import { assertNever } from "../../core/kit/assert.ts";
import { everyNowAndThen } from "../traffic/admission.ts";
import type { EventPoint } from "../../contract/index.ts";
import { EventFan, type FannedStream } from "./event-fan.ts";
import { EventPages, keyOf, pointLines } from "./event-pages.ts";
import type { Service, StreamAnswer } from "../handlers/handler.ts";
import type { Outlet } from "./stream.ts";

export interface StreamWanted {
  readonly filter: EventsFilter | null;
  /** Each id has the hash of its event: a browser's EventSource sends back nothing else. */
  readonly isChained: boolean;
  readonly isStillAdmitted: () => boolean;
  /** Before the start is read: who opens many takes its own share, and no more. */
  readonly takeStream: () => () => void;
}

export class EventStreams {
  readonly #service: Service;
  readonly #pages: EventPages;
  readonly #fan: EventFan;
  /** How often the history was replaced. */
  #histories = 0;

  constructor(service: Service, events: Events) {
    const { clock, limits } = service;
    this.#service = service;
    this.#pages = new EventPages(events);
    this.#fan = new EventFan({ clock, heartbeatMs: limits.heartbeatMs, events, pages: this.#pages });
    events.onReplaced(() => {
      this.#histories++;
      this.#pages.clear();
      this.#fan.endAll();
    });
  }

  /** Rejects with OVERLOADED, or as `start`, before anything is sent. */
  async open(start: () => Promise<EventPoint>, wanted: StreamWanted): Promise<StreamAnswer> {
    const close = wanted.takeStream();
    const histories = this.#histories;
    let point: EventPoint;
    try {
      point = await start();
    } catch (error) {
      close();
      throw error;
    }
    return {
      contentType: "text/event-stream; charset=utf-8",
      headers: { "x-accel-buffering": "no" },
      abandoned: close,
      stream: (out) => this.#follow(point, wanted, out, histories).finally(close),
    };
  }

  async #follow(start: EventPoint, wanted: StreamWanted, out: Outlet, histories: number): Promise<void> {
    const { filter, isChained } = wanted;
    const { clock, limits } = this.#service;
    const isAdmitted = everyNowAndThen(clock, limits.heartbeatMs, wanted.isStillAdmitted);
    const shownAtMs = clock.monotonicMs();
    const stream: FannedStream = {
      filter,
      filterKey: keyOf(filter, isChained),
      isChained,
      out,
      isAdmitted,
      after: start.sequence,
      hash: start.hash,
      shownId: start.sequence,
      shownAtMs,
    };
    await out.write(`retry: 1000\n${pointLines(start, isChained)}\n`);
    while (this.#histories === histories) {
      const left = await this.#fan.follow(stream);
      switch (left) {
        case "over":
          return;
        case "full":
          await out.room();
          break;
        case "history":
          await this.#readHistory(stream, () => this.#histories === histories);
          break;
        default:
          return assertNever(left, "why a stream has left the fan");
      }
    }
  }

  async #readHistory(stream: FannedStream, isSame: () => boolean): Promise<void> {
    const page = await this.#pages.read(stream.after, stream.filter, stream.isChained);
    // The fan asks whether it is still admitted before it shows anything; what is shown here is shown before that.
    if (!stream.isAdmitted() || !isSame()) return;
    stream.after = page.through;
    stream.hash = page.hash ?? stream.hash;
    if (page.bytes === null) return;
    stream.shownId = page.last;
    stream.shownAtMs = this.#service.clock.monotonicMs();
    if (!stream.out.push(page.bytes)) await stream.out.room();
  }
}
