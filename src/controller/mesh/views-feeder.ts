// Feeds mesh.sqlite with what arrives at this site, own events and those of others in one order, and marks lines that are forked or evicted there.
//
//   asking where the views are ──▶ reading both archives from there on ──nothing more──▶ waiting for the bell ──▶ reading …
//         ▲                                  └── a put or a read fails: after a pause ──┐
//         └─────────────────────────────────────────────────────────────────────────────┘
//
// Invariants:
// - One put is under way, and its batch is in memory; everything else is in the archives. Whoever writes rings, and waits for nothing.
// - A line is marked after its events are in: marks of lines that the views do not know yet are made when they do.

import { TenureError } from "../../core/kit/errors.ts";
import type { LineId } from "../../core/mesh/model.ts";
import type { Registry } from "../../core/mesh/registry/index.ts";
import { Bell } from "../../loops/bell.ts";
import { pause } from "../../loops/time.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import type { OwnGenerationView, OwnLineView } from "../../ports/mesh-lines.ts";
import type { ArrivedEvent, LineMark, MeshViews } from "../../ports/mesh-views.ts";
import { type Arrived, type ArrivalSources, arrivals, firstArrival } from "./arrivals.ts";
import { VIEWS_CHECK_MS, VIEWS_RETRY_MS } from "./limits.ts";

export interface MeshFeederOptions {
  readonly views: Pick<MeshViews, "through" | "put" | "mark" | "onReset">;
  readonly sources: Omit<ArrivalSources, "ownLine">;
  /** Null: this site has no line yet, and so nothing to name its events by. */
  readonly own: () => Pick<OwnLineView, "line" | "lines"> | null;
  /** Null: nothing of it is known any more. */
  readonly generationOf: (line: LineId) => number | null;
  readonly registry: () => Registry;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class MeshFeeder {
  readonly #options: MeshFeederOptions;
  readonly #bell: Bell;
  readonly #over = new AbortController();
  /** As the views have them. */
  #marks = new Map<LineId, LineMark>();
  #problem: string | null = null;

  constructor(options: MeshFeederOptions) {
    this.#options = options;
    this.#bell = new Bell(options.clock);
    options.views.onReset(() => {
      this.#marks = new Map();
      this.ring();
    });
    void this.#run();
  }

  /** Something was applied, or the registry has changed. */
  ring(): void {
    this.#bell.ring();
  }

  close(): void {
    this.#over.abort();
    this.ring();
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#over.signal.aborted) {
      try {
        await this.#feed();
        await this.#mark();
        this.#problem = null;
      } catch (error) {
        if (this.#over.signal.aborted) return;
        if (!TenureError.is(error)) throw error;
        this.#report(error);
        await pause(clock, VIEWS_RETRY_MS, this.#over.signal);
        continue;
      }
      await this.#bell.waitFor(VIEWS_CHECK_MS);
    }
  }

  async #feed(): Promise<void> {
    const { views, sources, own: ownLine } = this.#options;
    const own = ownLine();
    if (own === null) return;
    const through = await views.through();
    await this.#read(own, through + 1).catch(async (error: unknown) => {
      if (!TenureError.is(error) || error.code !== "LOG_COMPACTED") throw error;
      // Retention has cut off what the views lack: they count it as missing.
      await this.#read(own, await firstArrival(sources));
    });
  }

  async #read(own: Pick<OwnLineView, "line" | "lines">, from: number): Promise<void> {
    const { views, sources } = this.#options;
    for await (const batch of arrivals({ ...sources, ownLine: own.line }, from)) {
      if (this.#over.signal.aborted) return;
      await views.put(batch.map((one) => this.#arrived(one, own.lines)));
    }
  }

  #arrived(
    { arrival, line, lineSequence, receipt, checkpoint, ...item }: Arrived,
    own: readonly OwnGenerationView[],
  ): ArrivedEvent {
    const event = "hash" in item ? { hash: item.hash } : item.bytes;
    const at = { arrival, lineSequence, event, checkpoint };
    if (receipt !== undefined) {
      const generation = this.#options.generationOf(line) ?? 1;
      return { ...at, line, generation, receipt: receipt.sequence, arrivedMs: receipt.timestamp };
    }
    // Of a site that has recovered: the generation in which this one was written.
    const { line: written, generation } = own.findLast(({ after }) => after < lineSequence) ?? { line, generation: 1 };
    return { ...at, line: written, generation, receipt: null, arrivedMs: this.#options.clock.wallMs() };
  }

  async #mark(): Promise<void> {
    const { views, registry } = this.#options;
    const wanted = marksIn(registry());
    const lines = new Set([...wanted.keys(), ...this.#marks.keys()]);
    for (const line of lines) {
      const mark = wanted.get(line) ?? null;
      if ((this.#marks.get(line) ?? null) === mark) continue;
      await views.mark(line, mark);
      if (mark === null) this.#marks.delete(line);
      else this.#marks.set(line, mark);
    }
  }

  /** Once for each reason: it is tried again for ever. */
  #report({ code, message }: TenureError): void {
    if (this.#problem === code) return;
    this.#problem = code;
    this.#options.logger.warn(
      { event: "mesh-views", code },
      `the state of all sites does not follow for now: ${message}`,
    );
  }
}

function marksIn(registry: Registry): ReadonlyMap<LineId, LineMark> {
  const marks = new Map<LineId, LineMark>();
  for (const { id, lines } of registry.sites()) {
    for (const { line } of lines) {
      const { kind } = registry.standingOf(id, line, "vouched");
      if (kind === "forked" || kind === "evicted") marks.set(line, kind);
    }
  }
  return marks;
}
