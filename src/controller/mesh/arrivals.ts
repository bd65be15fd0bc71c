// A site's own events and those of other sites in one order, that of their arrival: without gaps, equal on all nodes, and equal to the
// own sequence for as long as nothing foreign has come.
//
//   own archive       1 2 3     4 5        6
//   receipts                [a]      [b c]      a receipt says how many own and how many foreign events are before it
//   arrival           1 2 3  4  5 6   7 8  9
//
// No index is kept: the receipt to begin with is found by halves, and from there on both archives are read in order.

import { assert } from "../../core/kit/assert.ts";
import type { ArchivedEvent, ChainPoint } from "../../core/archive/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { LineId } from "../../core/mesh/model.ts";
import { countsOf, decodeReceipt, newEvents, type Receipt } from "../../core/mesh/receipts/index.ts";

/** What is read of an archive (logs/archive). */
export interface ArrivalSource {
  readonly lastSequence: number;
  read(from: number, max?: number): AsyncGenerator<readonly ArchivedEvent[]>;
  manifest(): { readonly start: ChainPoint };
}

export interface ArrivalSources {
  readonly own: ArrivalSource;
  readonly receipts: ArrivalSource;
  readonly ownLine: LineId;
}

export type Arrived = {
  readonly arrival: number;
  readonly line: LineId;
  readonly lineSequence: number;
  /** That it came with; absent of an own event. */
  readonly receipt?: Pick<Receipt, "sequence" | "timestamp"> | undefined;
  /** Of the last item of a page: its signed note, and the page's `after`. */
  readonly checkpoint?: { readonly after: number; readonly note: string } | undefined;
} & ({ readonly bytes: Uint8Array } | { readonly hash: string });

/**
 * Batches, in order, from this arrival on, up to the last that is applied when it is called. Throws LOG_COMPACTED where it is not kept any
 * more, and what the archives throw.
 */
export async function* arrivals(sources: ArrivalSources, from: number): AsyncGenerator<readonly Arrived[]> {
  assert(from >= 1, "arrivals are counted from one", () => String(from));
  const { own, receipts, ownLine } = sources;
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
        line: ownLine,
        lineSequence: sequence,
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

/** The new events of a receipt, from this arrival on. */
function foreignOf(receipt: Receipt, from: number): Arrived[] {
  const { sequence, timestamp, own, foreign, first, page } = receipt;
  const before = own + foreign;
  const last = before + newEvents(receipt);
  return page.items.slice(first - page.after - 1 + Math.max(0, from - before - 1)).map((item, at) => {
    const arrival = Math.max(before + 1, from) + at;
    const checkpoint = arrival === last ? { after: page.after, note: page.checkpoint } : undefined;
    const lineSequence = first + arrival - before - 1;
    const place = { arrival, line: page.line, lineSequence, receipt: { sequence, timestamp }, checkpoint };
    return "hash" in item ? { ...place, hash: item.hash } : { ...place, bytes: item.bytes };
  });
}

/** The first arrival from which on everything is kept, in both archives. */
export async function firstArrival({ own, receipts }: Omit<ArrivalSources, "ownLine">): Promise<number> {
  const { lastSequence } = receipts;
  const counts = startCounts(receipts);
  const { sequence: cut } = own.manifest().start;
  // The first own event that is kept arrived with so many foreign ones before it.
  const after = await firstReceiptWith(receipts, lastSequence, (receipt) => receipt.own > cut);
  const { foreign } =
    after <= lastSequence ? await receiptAt(receipts, after) : await endOf(receipts, lastSequence, counts);
  return Math.max(counts.own + counts.foreign, cut + foreign) + 1;
}

/** The sequence of the first receipt that ends at this arrival or later; one after the last where none does. */
function firstReceipt(receipts: ArrivalSource, last: number, from: number): Promise<number> {
  return firstReceiptWith(receipts, last, (receipt) => receipt.own + receipt.foreign + newEvents(receipt) >= from);
}

/** By halves: of one that it holds for, it holds for all later ones. */
async function firstReceiptWith(
  receipts: ArrivalSource,
  last: number,
  holds: (receipt: Receipt) => boolean,
): Promise<number> {
  let [low, high] = [receipts.manifest().start.sequence + 1, last + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (holds(await receiptAt(receipts, middle))) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Events that are known before the first receipt that is kept. */
function startCounts(receipts: ArrivalSource): { readonly own: number; readonly foreign: number } {
  const counts = countsOf(receipts.manifest().start);
  assert(counts !== null, "receipts are kept from a place in their chain on");
  return counts;
}

function startOf(receipts: ArrivalSource, from: number): { readonly foreign: number } {
  const { start } = receipts.manifest();
  const counts = startCounts(receipts);
  const through = counts.own + counts.foreign;
  if (start.sequence === 0 || from > through) return counts;
  const next = `Begin with ${through + 1}`;
  throw new TenureError("LOG_COMPACTED", `what arrived as ${from} is not kept any more. ${next}.`);
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
