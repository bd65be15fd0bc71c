// What is led through Tenure's own servers, and is not theirs: a store of the harness, reached over HTTP, that keeps the highest
// epoch next to its data and refuses lower ones. One request is one atomic step: Node runs it without a break.
//
//   claim(epoch)   raises the stored epoch; refused where a higher one is stored. A new leader does this before it reads
//   write(epoch)   done only where this very epoch is the stored one
//
// It is reached directly, past the proxies: a worker that is cut off from the cluster can still write here, as long as its
// epoch is the highest.

import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Row } from "./ledger.ts";
import type { StaleOutcome } from "./messages.ts";
import type { Increment } from "./office.ts";

const REQUEST_MS_MAX = 2_000;
const BODY_BYTES_MAX = 64 * 1024;

type Wish = {
  readonly do: "claim" | "write" | "stale" | "lanes" | "epoch";
  readonly epoch?: number;
  readonly increment?: Increment;
};
interface Outcome {
  readonly done: boolean;
  readonly epoch: number;
  readonly lanes: readonly number[];
}

export class EpochStore {
  readonly #server: Server;
  readonly #rows: Row[] = [];
  readonly #lanes: number[];
  /** False: the planted mistake. Epochs are stored and never compared. */
  readonly #isFenced: boolean;
  #epoch = 0;
  #revision = 0;
  #stale = 0;

  private constructor(lanes: number, isFenced: boolean) {
    this.#isFenced = isFenced;
    this.#lanes = Array.from({ length: lanes }, () => 0);
    this.#server = createServer((request, response) => {
      void bodyOf(request).then((text) => response.end(JSON.stringify(this.#apply(JSON.parse(text) as Wish))));
    });
  }

  static async open(lanes: number, isFenced = true): Promise<EpochStore> {
    const store = new EpochStore(lanes, isFenced);
    await new Promise<void>((resolve) => store.#server.listen(0, "127.0.0.1", resolve));
    return store;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get rows(): readonly Row[] {
    return this.#rows;
  }

  get lanes(): readonly number[] {
    return [...this.#lanes];
  }

  /** The epoch stays: it never goes back. */
  clear(): void {
    this.#rows.length = 0;
  }

  async end(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #apply({ do: what, epoch = 0, increment }: Wish): Outcome {
    const isCurrent = what === "claim" ? epoch >= this.#epoch : epoch === this.#epoch;
    const done = what === "lanes" || what === "epoch" || isCurrent || !this.#isFenced;
    if (done && what === "claim") this.#epoch = epoch;
    if (done && what === "write" && increment !== undefined) {
      const { lane, value, worker, seq } = increment;
      this.#lanes[lane] = value;
      this.#keep({ worker, seq, lane, value, epoch });
    }
    if (done && what === "stale") this.#keep({ worker: "stale", seq: ++this.#stale, lane: -1, value: 0, epoch });
    return { done, epoch: this.#epoch, lanes: what === "lanes" ? this.#lanes : [] };
  }

  #keep(row: Omit<Row, "order">): void {
    this.#rows.push({ ...row, order: { kind: "revision", revision: ++this.#revision } });
  }
}

/** One wish, sent once. Rejects when no answer came. */
export async function ask(url: string, wish: Wish): Promise<Outcome> {
  const signal = AbortSignal.timeout(REQUEST_MS_MAX);
  const response = await fetch(url, { method: "POST", body: JSON.stringify(wish), signal });
  return (await response.json()) as Outcome;
}

export async function sendStale(url: string, epoch: number): Promise<StaleOutcome> {
  try {
    return (await ask(url, { do: "stale", epoch })).done ? "accepted" : "refused";
  } catch {
    return "unknown";
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) {
    text += String(chunk);
    if (text.length > BODY_BYTES_MAX) throw new Error("a wish that is too long");
  }
  return text;
}
