// GET /v1/watch/values: each change of a value once, in order, as server-sent events whose id is the version. Each stream reads the changes that its
// node keeps, a few at a time, each when the last one has found room: a slow reader delays nobody and holds one change in memory, and
// one that does not read at all is cut. One write concerns all who watch, so they share the turns of the loop.
//
//   following ──changes after its point are not kept any more──▶ `event: reset`, end: its reader lists again, and watches from there
//       └──gone, the server stops, not admitted any more──▶ end: its reader resumes after the last id, here or elsewhere

import type { Values } from "../../ports/values.ts";
import { VALUE_CHANGES_PER_READ_MAX } from "../limits.ts";
import { everyNowAndThen } from "../traffic/admission.ts";
import { TurnShare } from "../traffic/turn-share.ts";
import type { Service, StreamAnswer } from "../handlers/handler.ts";
import { within } from "./log-stream.ts";
import type { Outlet } from "./stream.ts";
import { ValueFrames } from "./value-frames.ts";

export interface ValuesWanted {
  readonly prefix: string;
  readonly isStillAdmitted: () => boolean;
  readonly takeStream: () => () => void;
}

export class ValueStreams {
  readonly #service: Service;
  readonly #values: Values;
  readonly #frames = new ValueFrames();
  readonly #share: TurnShare;

  constructor(service: Service) {
    this.#service = service;
    this.#values = service.values;
    this.#share = new TurnShare(service);
  }

  /** `start`: null where nothing can be resumed. Rejects with OVERLOADED, or as `start`, before anything is sent. */
  async open(start: () => Promise<number | null>, wanted: ValuesWanted): Promise<StreamAnswer> {
    const close = wanted.takeStream();
    let after: number | null;
    try {
      after = await start();
    } catch (error) {
      close();
      throw error;
    }
    return {
      contentType: "text/event-stream; charset=utf-8",
      headers: { "x-accel-buffering": "no" },
      abandoned: close,
      stream: (out) => this.#follow(after, wanted, out).finally(close),
    };
  }

  async #follow(start: number | null, { prefix, isStillAdmitted }: ValuesWanted, out: Outlet): Promise<void> {
    const { clock, limits } = this.#service;
    const isAdmitted = everyNowAndThen(clock, limits.heartbeatMs, isStillAdmitted);
    if (start === null) return this.#reset(out);
    let after = start;
    await out.write(`retry: 1000\nid: ${after}\n\n`);
    let shownAtMs = clock.monotonicMs();
    while (!out.signal.aborted) {
      const found = this.#values.changes(prefix, after, VALUE_CHANGES_PER_READ_MAX);
      if (found === null) return this.#reset(out);
      for (const [at, change] of found.changes.entries()) {
        const turn = this.#share.enter();
        if (turn !== null) await turn;
        if (!isAdmitted()) return;
        const isLast = found.changes[at + 1]?.version !== change.version;
        if (!out.push(this.#frames.of(change, isLast))) await out.room();
        shownAtMs = clock.monotonicMs();
      }
      after = Math.max(after, found.through);
      if (found.changes.length > 0) continue;
      const waitMs = shownAtMs + limits.heartbeatMs - clock.monotonicMs();
      after = Math.max(after, await this.#changed(prefix, after, waitMs, out.signal));
      if (clock.monotonicMs() < shownAtMs + limits.heartbeatMs) continue;
      if (!isAdmitted()) return;
      // A prefix may pass over many changes: an id without data moves the point from which a reader resumes, and shows nothing.
      await out.write(`: heartbeat\nid: ${after}\n\n`);
      shownAtMs = clock.monotonicMs();
    }
  }

  async #changed(prefix: string, after: number, waitMs: number, outer: AbortSignal): Promise<number> {
    const wait = within(this.#service.clock, Math.max(0, waitMs), outer);
    try {
      return await this.#values.changed(prefix, after, wait.signal);
    } finally {
      wait.close();
    }
  }

  /** Without an id: whoever reconnects by itself is reset again, and passes over nothing without noticing. */
  #reset(out: Outlet): Promise<void> {
    const { asOf } = this.#values.list({ prefix: "", after: null, limit: 1 });
    return out.write(`event: reset\ndata: {"as_of":${asOf}}\n\n`);
  }
}
