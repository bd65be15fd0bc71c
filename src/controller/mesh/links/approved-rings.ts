// Rings that an operator has approved by their hash, of sites that are known here by the word of others: the ring itself came with an event of the site that
// vouches, and that event may have come before the approval, when nobody could believe it. So it is looked for in what has arrived. The hash says which one it is.
//
// By the leader: when it begins, and at each approval. What it finds is an own event, as if it had come now.

import { decodeEvent } from "../../../core/events/index.ts";
import { TenureError } from "../../../core/kit/errors.ts";
import type { LineId } from "../../../core/mesh/model.ts";
import type { Receipt } from "../../../core/mesh/receipts/index.ts";
import type { Registry } from "../../../core/mesh/registry/index.ts";
import { giveWay } from "../../../loops/time.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Logger } from "../../../ports/logger.ts";
import type { SaidEvent } from "./word-of-others.ts";

export interface ApprovedRingsOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly registry: Registry;
  /** All that has arrived and is kept. */
  readonly receipts: () => AsyncIterable<Receipt>;
  readonly take: (line: LineId, events: readonly SaidEvent[]) => Promise<void>;
}

/** In the text of every event that registers a site. */
const REGISTERS = '"controller:registered"';
const decoder = new TextDecoder();

export class ApprovedRings {
  readonly #options: ApprovedRingsOptions;
  /** What was looked for since this leader began. */
  #looked = new Set<string>();
  #looking: Promise<void> = Promise.resolve();

  constructor(options: ApprovedRingsOptions) {
    this.#options = options;
  }

  /** A leader begins. */
  begin(): void {
    this.#looked = new Set();
    this.look();
  }

  /** Something has changed in the registry. */
  look(): void {
    const wanted = this.#options.registry.sites().filter(({ id, approvedRing }) => {
      if (approvedRing === null || this.#looked.has(`${id} ${approvedRing}`)) return false;
      this.#looked.add(`${id} ${approvedRing}`);
      return true;
    });
    if (wanted.length === 0) return;
    const ids = new Set(wanted.map(({ id }) => id));
    this.#looking = this.#looking.then(() => this.#walk(ids)).catch((error: unknown) => this.#failed(error));
  }

  async #walk(ids: ReadonlySet<string>): Promise<void> {
    const { receipts, take, clock } = this.#options;
    for await (const { page } of receipts()) {
      const found = page.items.flatMap((item) => ("hash" in item ? [] : registrationOf(item.bytes, ids)));
      if (found.length > 0) await take(page.line, found);
      await giveWay(clock);
    }
  }

  /** The site is approved again, or another leader looks. */
  #failed(error: unknown): void {
    if (!TenureError.is(error)) throw error;
    const text = `approved rings were not looked for to the end in what has arrived: ${error.message}`;
    this.#options.logger.warn({ event: "mesh-approved", code: error.code }, text);
  }
}

function registrationOf(bytes: Uint8Array, ids: ReadonlySet<string>): readonly SaidEvent[] {
  const text = decoder.decode(bytes);
  const read = text.includes(REGISTERS) ? decodeEvent(bytes) : null;
  return read?.kind === "event" && ids.has(read.event.entityId) ? [read] : [];
}
