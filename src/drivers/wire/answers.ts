// What a peer asks us on the connection that it dialled: each question is answered, in whatever order that is possible.
//
// Invariants: at most ANSWERING_MAX questions of one peer are worked on; one more is told "nothing" at once. A question that
// can't be understood, or whose answer fails, is told "nothing" too: that is between the two nodes' releases, not a
// reason to part.

import { assert } from "../../core/kit/assert.ts";
import type { PeerKey } from "../../core/kit/ids.ts";
import { ANSWER_BYTES_MAX } from "../../core/kit/limits.ts";
import type { Answering } from "../../ports/peers/queries.ts";
import type { Connection } from "./connection.ts";
import { FRAME, type FrameFault } from "./frame.ts";
import { ANSWERING_MAX } from "./limits.ts";
import { decodeQuery, encodeAnswer } from "./questions.ts";
import type { WireCounts } from "./stats.ts";

export class Answers {
  readonly #peer: PeerKey;
  readonly #connection: Connection;
  readonly #answer: Answering;
  readonly #counts: Pick<WireCounts, "answeredQueries" | "droppedFull">;
  #active = 0;

  constructor(
    peer: PeerKey,
    connection: Connection,
    answer: Answering,
    counts: Pick<WireCounts, "answeredQueries" | "droppedFull">,
  ) {
    this.#peer = peer;
    this.#connection = connection;
    this.#answer = answer;
    this.#counts = counts;
  }

  take(payload: Uint8Array): FrameFault | null {
    const asked = decodeQuery(payload);
    if (asked === null) return { reason: "garbage", message: "a query that can't be read" };
    if (this.#active >= ANSWERING_MAX) this.#send(asked.number, null);
    else void this.#work(asked.number, asked.query);
    return null;
  }

  async #work(number: number, query: Uint8Array): Promise<void> {
    this.#active++;
    const answer = await this.#answer(this.#peer, query).catch(() => null);
    this.#active--;
    assert(answer === null || answer.length <= ANSWER_BYTES_MAX, "an answer is within its bound");
    this.#send(number, answer);
  }

  /** Dropped where too much waits for that peer: it asks again. */
  #send(number: number, answer: Uint8Array | null): void {
    if (!this.#connection.isOpen) return;
    if (!this.#connection.outbox.push(FRAME.answer, encodeAnswer(number, answer))) this.#counts.droppedFull++;
    else if (answer !== null) this.#counts.answeredQueries++;
  }
}
