// What we have asked one peer on one connection, until it answers.
//
//   query:  u32 number | what is asked           on the connection that we dialled
//   answer: u32 number | u8 kind | the bytes     on the same one, where otherwise only its pongs travel: what the peer
//                                                says of its own accord, heartbeats above all, has another connection
//
//   asked ──answered──▶ settled          also by the end of the connection, and after QUERY_MS_MAX: with nothing
//
// Invariants: at most QUERIES_PENDING_MAX wait; each is settled once. An answer that nobody waits for any more is dropped.

import type { FrameFault } from "./frame.ts";
import { QUERIES_PENDING_MAX, QUERY_MS_MAX } from "./limits.ts";
import type { WireCounts } from "./stats.ts";

const NUMBER_BYTES = 4;
const NUMBERS = 2 ** 32;
const QUERY_HEADER_BYTES = NUMBER_BYTES;
const ANSWER_HEADER_BYTES = NUMBER_BYTES + 1;

const KIND_NOTHING = 0;
const KIND_BYTES = 1;

interface Pending {
  readonly sinceMs: number;
  readonly settle: (answer: Uint8Array | null) => void;
}

export class Questions {
  readonly #send: (payload: Uint8Array) => boolean;
  readonly #counts: Pick<WireCounts, "askedQueries" | "unansweredQueries">;
  readonly #pending = new Map<number, Pending>();
  #next = 0;
  #isOver = false;

  /** `send`: false where it could not be taken. */
  constructor(send: (payload: Uint8Array) => boolean, counts: Pick<WireCounts, "askedQueries" | "unansweredQueries">) {
    this.#send = send;
    this.#counts = counts;
  }

  /** Null without an answer. */
  ask(query: Uint8Array): Promise<Uint8Array | null> {
    if (this.#isOver || this.#pending.size >= QUERIES_PENDING_MAX) return Promise.resolve(null);
    const number = this.#next;
    this.#next = (this.#next + 1) % NUMBERS;
    if (!this.#send(encodeQuery(number, query))) return Promise.resolve(null);
    this.#counts.askedQueries++;
    return new Promise((settle) => this.#pending.set(number, { sinceMs: performance.now(), settle }));
  }

  take(payload: Uint8Array): FrameFault | null {
    const kind = payload[NUMBER_BYTES];
    const bytes = payload.subarray(ANSWER_HEADER_BYTES);
    if (kind === undefined || kind > KIND_BYTES || (kind === KIND_NOTHING && bytes.length > 0)) {
      return { reason: "garbage", message: "an answer that can't be read" };
    }
    this.#settle(numberAt(payload), kind === KIND_BYTES ? bytes : null);
    return null;
  }

  /** Gives up those that are asked for too long. */
  tick(nowMs: number): void {
    for (const [number, { sinceMs }] of this.#pending) if (nowMs - sinceMs > QUERY_MS_MAX) this.#unanswered(number);
  }

  /** The connection is no more: nobody will answer. */
  end(): void {
    this.#isOver = true;
    for (const number of this.#pending.keys()) this.#unanswered(number);
  }

  #unanswered(number: number): void {
    this.#counts.unansweredQueries++;
    this.#settle(number, null);
  }

  #settle(number: number, answer: Uint8Array | null): void {
    const pending = this.#pending.get(number);
    this.#pending.delete(number);
    pending?.settle(answer);
  }
}

function encodeQuery(number: number, query: Uint8Array): Uint8Array {
  const payload = new Uint8Array(QUERY_HEADER_BYTES + query.length);
  new DataView(payload.buffer).setUint32(0, number);
  payload.set(query, QUERY_HEADER_BYTES);
  return payload;
}

/** Null where it can't be read. */
export function decodeQuery(payload: Uint8Array): { readonly number: number; readonly query: Uint8Array } | null {
  if (payload.length < QUERY_HEADER_BYTES) return null;
  return { number: numberAt(payload), query: payload.subarray(QUERY_HEADER_BYTES) };
}

export function encodeAnswer(number: number, answer: Uint8Array | null): Uint8Array {
  const payload = new Uint8Array(ANSWER_HEADER_BYTES + (answer?.length ?? 0));
  new DataView(payload.buffer).setUint32(0, number);
  payload[NUMBER_BYTES] = answer === null ? KIND_NOTHING : KIND_BYTES;
  if (answer !== null) payload.set(answer, ANSWER_HEADER_BYTES);
  return payload;
}

function numberAt(payload: Uint8Array): number {
  return new DataView(payload.buffer, payload.byteOffset).getUint32(0);
}
