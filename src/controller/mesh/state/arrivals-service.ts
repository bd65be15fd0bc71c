// Arrivals of this site, read and verified (ports/mesh/arrivals.ts), from its two archives. Any node answers; a few readers at a time (the API sees
// to that), in slices.

import { eventHashOf } from "../../../core/events/index.ts";
import { decodeReceipt } from "../../../core/mesh/receipts/index.ts";
import type { LineId } from "../../../core/mesh/model.ts";
import { giveWay } from "../../../loops/time.ts";
import type { ArrivalRecord, Arrivals, ArrivalsPage, ArrivalsVerified } from "../../../ports/mesh/arrivals.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Digest } from "../../../ports/digest.ts";
import type { Events } from "../../../ports/events.ts";
import type { MeshViews } from "../../../ports/mesh/views.ts";
import { Slice } from "../../slice.ts";
import { type Arrived, arrivals, type ArrivalSource, arrivalOfOwn, firstArrivalKept } from "../receipts/arrivals.ts";
import { ForeignChains } from "./foreign-chains.ts";
import type { OwnLineFold } from "../own/own-line-fold.ts";
import { ownPlaceOf } from "./own-lines-of.ts";

export interface ArrivalsServiceOptions {
  readonly own: ArrivalSource;
  readonly receipts: ArrivalSource & { verify(): AsyncIterable<ReceiptsStep> };
  readonly events: Pick<Events, "verify">;
  /** The arrival number of the last event that is applied. */
  readonly last: () => number;
  readonly ownLine: Pick<OwnLineFold, "lines">;
  /** What a receipt that can't be read has brought. */
  readonly views: Pick<MeshViews, "receiptPlace">;
  readonly clock: Clock;
  readonly digest: Digest;
}

type ReceiptsStep =
  | { readonly kind: "progress" | "end" }
  | { readonly kind: "broken"; readonly sequence: number; readonly why: string }
  | { readonly kind: "missing"; readonly first: number; readonly last: number; readonly isLost: boolean };

type Broken = Extract<ArrivalsVerified, { valid: false }>;

export class ArrivalsService implements Arrivals {
  readonly #options: ArrivalsServiceOptions;

  constructor(options: ArrivalsServiceOptions) {
    this.#options = options;
  }

  get last(): number {
    return this.#options.last();
  }

  logId(): LineId | null {
    return this.#options.ownLine.lines?.generations.at(-1)?.line ?? null;
  }

  async read(after: number, { max, bytesMax }: Parameters<Arrivals["read"]>[1]): Promise<ArrivalsPage> {
    const events: ArrivalRecord[] = [];
    if (after >= this.last) return { events, through: after };
    let bytes = 0;
    for await (const batch of arrivals(this.#options, after + 1)) {
      for (const arrived of batch) {
        const record = this.#recordOf(arrived);
        events.push(record);
        bytes += record.bytes?.length ?? 0;
        if (events.length >= max || bytes >= bytesMax) return { events, through: record.arrival };
      }
    }
    return { events, through: after + events.length };
  }

  async verify(signal: AbortSignal): Promise<ArrivalsVerified> {
    const through = this.last;
    const own = await this.#options.events.verify(() => undefined, signal);
    if (!own.valid) {
      const { firstBrokenSequence: lineSequence, reason } = own;
      const { line } = this.#ownPlace(lineSequence);
      const arrival = await arrivalOfOwn(this.#options, lineSequence).catch(() => lineSequence);
      return { valid: false, first: 1, firstBrokenSequence: arrival, line, lineSequence, reason };
    }
    const broken = (await this.#brokenReceipt(signal)) ?? (await this.#brokenLine(signal));
    if (broken !== null) return broken;
    const first = await firstArrivalKept(this.#options);
    return { valid: true, first, through, headHash: own.headHash, root: own.root };
  }

  async #brokenReceipt(signal: AbortSignal): Promise<Broken | null> {
    for await (const step of this.#options.receipts.verify()) {
      signal.throwIfAborted();
      if (step.kind === "broken") return await this.#brokenAt(step.sequence, step.why);
      if (step.kind !== "missing") continue;
      const { first, last, isLost } = step;
      const why = isLost ? "no member of the cluster has them" : "the other members are asked for them";
      return await this.#brokenAt(first, `receipts ${first} to ${last} are not here: ${why}`);
    }
    return null;
  }

  /** What can't be read does not say what it was: the views have remembered that. */
  async #brokenAt(receipt: number, why: string): Promise<Broken> {
    const place = await this.#options.views.receiptPlace(receipt).catch(() => null);
    const reason = `receipt ${receipt}, with which it came: ${why}`;
    const { arrival: firstBrokenSequence = 1, line = null, lineSequence = null } = place ?? {};
    return { valid: false, first: 1, firstBrokenSequence, line, lineSequence, reason };
  }

  async #brokenLine(signal: AbortSignal): Promise<Broken | null> {
    const { receipts, digest, clock } = this.#options;
    const chains = new ForeignChains(digest);
    const { start } = receipts.manifest();
    const count = receipts.lastSequence - start.sequence;
    if (count === 0) return null;
    let slice = new Slice(clock);
    for await (const batch of receipts.read(start.sequence + 1, count)) {
      for (const { sequence, bytes } of batch) {
        signal.throwIfAborted();
        const read = decodeReceipt(bytes);
        if (read.kind === "malformed") return await this.#brokenAt(sequence, read.problem);
        const fault = chains.check(read.receipt);
        if (fault !== null) {
          const { arrival: firstBrokenSequence, line, lineSequence, reason } = fault;
          return { valid: false, first: 1, firstBrokenSequence, line, lineSequence, reason };
        }
        if (!slice.isOver) continue;
        await giveWay(clock);
        slice = new Slice(clock);
      }
    }
    return null;
  }

  #recordOf(arrived: Arrived): ArrivalRecord {
    const { arrival, lineSequence } = arrived;
    const line = arrived.line ?? this.#ownPlace(lineSequence).line;
    if (!("bytes" in arrived)) return { arrival, line, lineSequence, eventHash: arrived.hash, bytes: null };
    const { bytes } = arrived;
    return { arrival, line, lineSequence, eventHash: eventHashOf(bytes, this.#options.digest), bytes };
  }

  #ownPlace(sequence: number): { readonly line: LineId | null } {
    const place = ownPlaceOf(this.#options.ownLine.lines, sequence);
    return place.kind === "in" ? place : { line: null };
  }
}
