// A site's own events and those of other sites in one order, that of their arrival: without gaps, equal on all nodes, and equal to the
// own sequence for as long as nothing foreign has come.
//
//   own archive       1 2 3     4 5        6
//   receipts                [a]      [b c]      a receipt says how many own and how many foreign events are before it
//   arrival           1 2 3  4  5 6   7 8  9
//
// No index is kept: the receipt to begin with is found by halves, and from there on both archives are read in order.

import { assert } from "../../../core/kit/assert.ts";
import type { ArchivedEvent, ChainPoint } from "../../../core/archive/index.ts";
import { TenureError } from "../../../core/kit/errors.ts";
import type { LineId } from "../../../core/mesh/model.ts";
import { countsOf, decodeReceipt, newEvents, type Receipt } from "../../../core/mesh/receipts/index.ts";

/** What is read of an archive (logs/archive). */
export interface ArrivalSource {
  readonly lastSequence: number;
  read(from: number, max?: number): AsyncGenerator<readonly ArchivedEvent[]>;
  manifest(): { readonly start: ChainPoint };
}

export interface ArrivalSources {
  readonly own: ArrivalSource;
  readonly receipts: ArrivalSource;
}

export type Arrived = {
  readonly arrival: number;
  /** Null: of this site itself. */
  readonly line: LineId | null;
  readonly lineSequence: number;
  /** With which it came; null: of this site itself. */
  readonly receipt: Receipt | null;
} & ({ readonly bytes: Uint8Array } | { readonly hash: string });

/**
 * Batches, in order, from this arrival on, up to the last that is applied when it is called. Throws LOG_COMPACTED where it is not kept any
 * more, and what the archives throw.
 */
export async function* arrivals(sources: ArrivalSources, from: number): AsyncGenerator<readonly Arrived[]> {
  assert(from >= 1, "arrivals are counted from one", () => String(from));
  const { own, receipts } = sources;
  // Of one moment: what is applied later is in a receipt that is not read here.
  const [ownLast, receiptsLast] = [own.lastSequence, receipts.lastSequence];
  const start = startOf(receipts, from);
  const first = await firstReceipt(receipts, receiptsLast, from);
  let { foreign } =
    first <= receiptsLast ? await receiptAt(receipts, first) : await endOf(receipts, receiptsLast, start);
  let next = from;
  async function* ownThrough(through: number): AsyncGenerator<readonly Arrived[]> {
    const lift = foreign;
    const at = next - lift;
    if (at > through) return;
    for await (const batch of own.read(at, through - at + 1)) {
      yield batch.map(({ sequence, bytes }) => ({
        arrival: sequence + lift,
        line: null,
        lineSequence: sequence,
        receipt: null,
        bytes,
      }));
    }
    next = through + lift + 1;
  }
  if (first <= receiptsLast) {
    for await (const batch of receipts.read(first, receiptsLast - first + 1)) {
      for (const { sequence, bytes } of batch) {
        const receipt = readable(bytes, sequence);
        yield* ownThrough(receipt.own);
        const arrived = foreignOf(receipt, next);
        yield arrived;
        next += arrived.length;
        foreign = receipt.foreign + newEvents(receipt);
      }
    }
  }
  yield* ownThrough(ownLast);
}

/** From here on everything is kept, own and foreign. */
export async function firstArrivalKept(sources: ArrivalSources): Promise<number> {
  const { own, receipts } = sources;
  const { sequence: gone } = own.manifest().start;
  const counts = startCounts(receipts);
  // What arrived right after the last own event that is gone may be of another site.
  const first = gone === 0 ? 1 : (await arrivalOfOwn(sources, gone)) + 1;
  // Where that is of before the receipts that are kept, they say no more than that it was before them.
  return Math.max(counts.own + counts.foreign + 1, first);
}

/** The last own event and the last receipt that have arrived whole by this arrival. */
export async function placesThrough(
  { own, receipts }: ArrivalSources,
  arrival: number,
): Promise<{ readonly own: number; readonly receipts: number }> {
  const [ownLast, receiptsLast] = [own.lastSequence, receipts.lastSequence];
  const next = await firstReceipt(receipts, receiptsLast, arrival + 1);
  if (next > receiptsLast) {
    const { foreign } = await endOf(receipts, receiptsLast, startCounts(receipts));
    return { own: Math.min(ownLast, arrival - foreign), receipts: receiptsLast };
  }
  const after = await receiptAt(receipts, next);
  return { own: Math.min(after.own, arrival - after.foreign), receipts: next - 1 };
}

/** The arrival number of an own event, as far as the receipts that are kept say. */
export async function arrivalOfOwn({ receipts }: Pick<ArrivalSources, "receipts">, sequence: number): Promise<number> {
  const { start } = receipts.manifest();
  const counts = startCounts(receipts);
  let [low, high] = [start.sequence + 1, receipts.lastSequence + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if ((await receiptAt(receipts, middle)).own < sequence) low = middle + 1;
    else high = middle;
  }
  const { foreign } =
    low <= receipts.lastSequence
      ? await receiptAt(receipts, low)
      : await endOf(receipts, receipts.lastSequence, counts);
  return sequence + foreign;
}

/** The new events of a receipt, from this arrival on. */
export function foreignOf(receipt: Receipt, from: number): Arrived[] {
  const { own, foreign, first, page } = receipt;
  const before = own + foreign;
  return page.items.slice(first - page.after - 1 + Math.max(0, from - before - 1)).map((item, at) => {
    const arrival = Math.max(before + 1, from) + at;
    const place = { arrival, line: page.line, lineSequence: first + arrival - before - 1, receipt };
    return "hash" in item ? { ...place, hash: item.hash } : { ...place, bytes: item.bytes };
  });
}

/** The sequence of the first receipt that ends at this arrival or later; one after the last where none does. */
async function firstReceipt(receipts: ArrivalSource, last: number, from: number): Promise<number> {
  let [low, high] = [receipts.manifest().start.sequence + 1, last + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const receipt = await receiptAt(receipts, middle);
    if (receipt.own + receipt.foreign + newEvents(receipt) < from) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Events that are known before the first receipt that is kept. */
function startOf(receipts: ArrivalSource, from: number): { readonly foreign: number } {
  const { start } = receipts.manifest();
  const counts = startCounts(receipts);
  const through = counts.own + counts.foreign;
  if (start.sequence === 0 || from > through) return counts;
  const next = `Begin with ${through + 1}`;
  throw new TenureError("LOG_COMPACTED", `what arrived as ${from} is not kept any more. ${next}.`);
}

function startCounts(receipts: ArrivalSource): { readonly own: number; readonly foreign: number } {
  const counts = countsOf(receipts.manifest().start);
  assert(counts !== null, "receipts are kept from a place in their chain on");
  return counts;
}

/** How many foreign events there are after the last receipt. */
async function endOf(
  receipts: ArrivalSource,
  last: number,
  start: { readonly foreign: number },
): Promise<{ readonly foreign: number }> {
  if (last === receipts.manifest().start.sequence) return start;
  const receipt = await receiptAt(receipts, last);
  return { foreign: receipt.foreign + newEvents(receipt) };
}

async function receiptAt(receipts: ArrivalSource, sequence: number): Promise<Receipt> {
  for await (const [found] of receipts.read(sequence, 1)) {
    if (found !== undefined) return readable(found.bytes, sequence);
  }
  throw new TenureError("BACKEND_UNAVAILABLE", `receipt ${sequence} can't be read now. Ask another node, or later.`);
}

function readable(bytes: Uint8Array, sequence: number): Receipt {
  const read = decodeReceipt(bytes);
  if (read.kind === "receipt") return read.receipt;
  throw new TenureError("DISK_DAMAGED", `receipt ${sequence} can't be read: ${read.problem}.`);
}
