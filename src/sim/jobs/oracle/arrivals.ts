// Arrival numbers, as a run sees them on all of its servers: which event has which, counted here by itself as each server applies its
// events and receipts.
//
// - A number belongs to one event, and an event has one number, on whichever server and in whichever of its lives.
// - On a server numbers go on without a gap; what a snapshot brings is what some server had counted at the same place.
// - A receipt has the same bytes everywhere. The events of a line come in the order of the line, each once.

import { newEvents, type SealedReceipt } from "../../../core/mesh/receipts/index.ts";
import { arrivals } from "../../../controller/mesh/receipts/arrivals.ts";
import type { ReceiptsFold } from "../../../controller/mesh/receipts/receipts-fold.ts";
import type { Archive } from "../../../logs/index.ts";
import type { Digest } from "../../../ports/digest.ts";

const OWN = "own";

interface Counting {
  own: number;
  foreign: number;
  receipts: number;
}

export class ArrivalLedger {
  readonly #digest: Digest;
  readonly #wrong: (node: string, what: string) => void;
  /** By arrival: `line/sequence`, and back. */
  readonly #events: string[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #receipts: string[] = [];
  /** By own and foreign events and receipts that are applied: the state of the lines there. */
  readonly #states = new Map<string, string>();
  readonly #sizes = new Map<string, number>();
  readonly #nodes = new Map<string, Counting>();

  constructor(digest: Digest, wrong: (node: string, what: string) => void) {
    this.#digest = digest;
    this.#wrong = wrong;
  }

  get last(): number {
    return this.#events.length;
  }

  started(node: string): void {
    this.#nodes.set(node, { own: 0, foreign: 0, receipts: 0 });
  }

  /** An own event was applied there. */
  own(node: string, sequence: number): void {
    const counting = this.#nodes.get(node)!;
    if (sequence !== counting.own + 1) this.#wrong(node, `applies event ${sequence} after ${counting.own}`);
    counting.own = sequence;
    this.#number(node, counting.own + counting.foreign, `${OWN}/${sequence}`);
  }

  receipt(node: string, { receipt, bytes }: SealedReceipt, fold: ReceiptsFold): void {
    const counting = this.#nodes.get(node)!;
    const { sequence, page, first } = receipt;
    if (sequence !== counting.receipts + 1) this.#wrong(node, `seals receipt ${sequence} after ${counting.receipts}`);
    const hash = this.#digest.sha256Hex(bytes);
    const known = (this.#receipts[sequence] ??= hash);
    if (known !== hash) this.#wrong(node, `has another receipt ${sequence} than the other servers`);
    if (receipt.own !== counting.own || receipt.foreign !== counting.foreign)
      this.#wrong(
        node,
        `counts ${receipt.own} + ${receipt.foreign} events and not ${counting.own} + ${counting.foreign}`,
      );
    const isNews = known === hash && !this.#numbers.has(`${page.line}/${first}`);
    const size = this.#sizes.get(page.line) ?? 0;
    if (isNews && first !== size + 1) this.#wrong(node, `takes event ${first} of ${page.line} after ${size}`);
    for (let at = 0; at < newEvents(receipt); at++) {
      counting.foreign++;
      this.#number(node, counting.own + counting.foreign, `${page.line}/${first + at}`);
    }
    this.#sizes.set(page.line, Math.max(size, first + newEvents(receipt) - 1));
    counting.receipts = sequence;
    this.#compare(node, counting, fold);
  }

  /** A snapshot's own events; the rest of it follows. */
  ownRestored(node: string, own: number): void {
    this.#nodes.get(node)!.own = own;
  }

  restored(node: string, own: number, fold: ReceiptsFold): void {
    const counting = { own, foreign: fold.state.foreign, receipts: fold.state.head.sequence };
    this.#nodes.set(node, counting);
    this.#compare(node, counting, fold);
    if (fold.arrival > this.last) this.#wrong(node, `has ${fold.arrival} arrivals of ${this.last}`);
  }

  #compare(node: string, { foreign, receipts }: Counting, fold: ReceiptsFold): void {
    const lines = [...fold.state.lines()].map(({ line, size, hash }) => `${line} ${size} ${hash}`).toSorted();
    const state = `${foreign} ${fold.state.floorMs} ${lines.join()}`;
    const known = this.#states.get(String(receipts)) ?? state;
    this.#states.set(String(receipts), known);
    if (known !== state) this.#wrong(node, `has another state after receipt ${receipts}: ${state} and not ${known}`);
  }

  #number(node: string, arrival: number, event: string): void {
    const known = (this.#events[arrival - 1] ??= event);
    const number = this.#numbers.get(event) ?? arrival;
    this.#numbers.set(event, number);
    if (known !== event) this.#wrong(node, `has ${event} as arrival ${arrival}, and others ${known}`);
    if (number !== arrival) this.#wrong(node, `has ${event} a second time, as ${arrival} after ${number}`);
  }

  /** Null: the archives of this server hold just this, read from any number on. */
  async problem(
    { archive, receipts }: { readonly archive: Archive; readonly receipts: Archive },
    from: number,
  ): Promise<string | null> {
    // What arrives while this is read may be in it or not.
    const { last } = this;
    for await (const step of receipts.verify()) {
      if (step.kind === "broken") return `finds receipt ${step.sequence} broken: ${step.why}`;
    }
    for await (const batch of receipts.read(1)) {
      for (const { sequence, bytes } of batch) {
        if (this.#digest.sha256Hex(bytes) !== this.#receipts[sequence])
          return `has another receipt ${sequence} archived`;
      }
    }
    if (receipts.lastSequence !== Math.max(0, this.#receipts.length - 1))
      return `has ${receipts.lastSequence} of ${this.#receipts.length - 1} receipts archived`;
    let next = from;
    for await (const batch of arrivals({ own: archive, receipts }, from)) {
      for (const { arrival, line, lineSequence } of batch) {
        const event = `${line ?? OWN}/${lineSequence}`;
        if (arrival !== next || this.#events[arrival - 1] !== event)
          return `reads ${event} as arrival ${arrival} where ${next} is ${this.#events[next - 1]}`;
        next++;
      }
    }
    return next > last ? null : `reads arrivals up to ${next - 1} of ${last}`;
  }
}
