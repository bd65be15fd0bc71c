// A link that another site dialled: what it is sent on the stream. The stream's writer asks for the next message when the last one has found room
// (`next`), so a reader that is slow costs the pages of one send and the wishes of its lines, and no queue.
//
//   open: hello, heads, then wishes first, a page where one waits, heads each second ──close──▶ bye ──▶ over

import type { Page } from "../../../core/mesh/model.ts";
import type { LinkId, SentOutcome } from "../../../core/mesh/spread/index.ts";
import { SITE_HEADS_MS } from "../../../core/kit/timeouts.ts";
import { Bell } from "../../../loops/bell.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Introduction } from "../../../ports/mesh/sites.ts";
import { endOf, type LinkEnd, type Wish, Wishes } from "./link-end.ts";
import type { HeadsSent } from "./own-heads.ts";

export interface ServedLinkOptions {
  readonly id: LinkId;
  readonly controller: string;
  readonly clock: Clock;
  readonly introduction: Promise<Introduction>;
  readonly heads: HeadsSent;
  /** Of this site, for whoever has to dial again. */
  readonly urls: () => readonly string[];
}

export class ServedLink implements LinkEnd {
  readonly url = null;
  readonly roundTripMs = null;
  readonly #options: ServedLinkOptions;
  readonly #wishes = new Wishes();
  readonly #bell: Bell;
  #isGreeted = false;
  #headsAtMs = -Infinity;
  /** `handedOut`: so many of its pages. What was handed out is written when the next message is asked for. */
  #sending: {
    readonly pages: readonly Page[];
    readonly written: PromiseWithResolvers<SentOutcome>;
    handedOut: number;
  } | null = null;
  #state: "open" | "leaving" | "over" = "open";

  constructor(options: ServedLinkOptions) {
    this.#options = options;
    this.#bell = new Bell(options.clock);
  }

  get id(): LinkId {
    return this.#options.id;
  }

  get controller(): string {
    return this.#options.controller;
  }

  get isOver(): boolean {
    return this.#state !== "open";
  }

  send(pages: readonly Page[]): Promise<SentOutcome> {
    const written = Promise.withResolvers<SentOutcome>();
    if (this.isOver) written.reject(new Error("the stream is over"));
    else this.#sending = { pages, written, handedOut: 0 };
    this.#bell.ring();
    return written.promise;
  }

  ask(wish: Wish): void {
    this.#wishes.add(wish);
    this.#bell.ring();
  }

  close(): void {
    if (this.#state === "open") this.#state = "leaving";
    this.#sending?.written.reject(new Error("the stream is over"));
    this.#sending = null;
    this.#bell.ring();
  }

  /** The next message, as it goes over the wire; null: the stream ends here. */
  async next(): Promise<object | null> {
    this.#settle();
    for (;;) {
      if (this.#state !== "open") return this.#leave();
      if (!this.#isGreeted) return this.#greet();
      const message = this.#due() ?? (await this.#headsDue());
      if (message !== null) return message;
      await this.#bell.wait(this.#headsAtMs);
    }
  }

  async #greet(): Promise<object> {
    this.#isGreeted = true;
    return { hello: await this.#options.introduction };
  }

  /** What was handed out last is written: the stream delivers it, or breaks. */
  #settle(): void {
    const sent = this.#sending;
    if (sent === null || sent.handedOut < sent.pages.length) return;
    this.#sending = null;
    sent.written.resolve({ kind: "taken", through: endOf(sent.pages.at(-1)!) });
  }

  #due(): object | null {
    const wish = this.#nextWish();
    if (wish !== undefined) return wish.kind === "graft" ? { graft: wish.graft } : { prune: { line: wish.line } };
    const page = this.#sending?.pages[this.#sending.handedOut];
    if (page === undefined || this.#headsAtMs === -Infinity) return null;
    this.#sending!.handedOut++;
    return { page };
  }

  #nextWish(): Wish | undefined {
    const [first, ...rest] = this.#wishes.take();
    for (const wish of rest) this.#wishes.add(wish);
    return first;
  }

  async #headsDue(): Promise<object | null> {
    const { clock, heads } = this.#options;
    if (clock.monotonicMs() < this.#headsAtMs) return null;
    this.#headsAtMs = clock.monotonicMs() + SITE_HEADS_MS;
    const notes = await heads.next();
    return notes === null ? null : { heads: notes, at: Math.floor(clock.wallMs()) };
  }

  #leave(): object | null {
    if (this.#state === "over") return null;
    this.#state = "over";
    return { bye: true, urls: this.#options.urls() };
  }
}
