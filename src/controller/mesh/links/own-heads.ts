// The heads that this site shows to others: a signed note for each line that it has. They are made once for all links in each second; a link is
// sent all of them first, then those of lines that grew, and all of them again now and then: the other site may not have known a line, or its
// ring, when it was shown its head.

import type { LineId } from "../../../core/mesh/model.ts";
import { TenureError } from "../../../core/kit/errors.ts";
import { SITE_HEADS_MS } from "../../../core/kit/timeouts.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { LineSource } from "../../../ports/mesh/lines.ts";
import { HEADS_ALL_EVERY, HEADS_QUIET_EVERY } from "../limits.ts";

interface Head {
  readonly line: LineId;
  readonly note: string;
}

export class OwnHeads {
  readonly #lines: Pick<LineSource, "lines" | "size" | "checkpoint">;
  readonly #clock: Clock;
  #made: Promise<readonly Head[]> = Promise.resolve([]);
  #madeMs = -Infinity;

  constructor(lines: Pick<LineSource, "lines" | "size" | "checkpoint">, clock: Clock) {
    this.#lines = lines;
    this.#clock = clock;
  }

  async now(): Promise<readonly Head[]> {
    const nowMs = this.#clock.monotonicMs();
    // Links ask at different moments of one second; half of it is as good.
    if (nowMs - this.#madeMs >= SITE_HEADS_MS / 2) {
      this.#madeMs = nowMs;
      this.#made = this.#make();
    }
    const made = await this.#made;
    // The own line may be held since: the first peer has registered, and is compared before it is shown anything.
    const shown = new Set(this.#lines.lines());
    return made.filter(({ line }) => shown.has(line));
  }

  forLink(): HeadsSent {
    return new HeadsSent(this);
  }

  async #make(): Promise<readonly Head[]> {
    const heads: Head[] = [];
    for (const line of this.#lines.lines()) {
      const note = this.#lines.size(line) === 0 ? null : await this.#note(line);
      if (note !== null) heads.push({ line, note });
    }
    return heads;
  }

  /** Null: it can't be signed or read now. The other lines are shown all the same. */
  async #note(line: LineId): Promise<string | null> {
    try {
      return await this.#lines.checkpoint(line);
    } catch (error) {
      if (!TenureError.is(error)) throw error;
      return null;
    }
  }
}

/** What one link was sent. */
export class HeadsSent {
  readonly #heads: Pick<OwnHeads, "now">;
  readonly #sent = new Map<LineId, string>();
  #times = 0;
  /** So many times in a row there was nothing to say. */
  #quiet = 0;

  constructor(heads: Pick<OwnHeads, "now">) {
    this.#heads = heads;
  }

  /** Every second: those that it was not sent yet; every HEADS_ALL_EVERY times all of them. Null: none, and the link may be silent. */
  async next(): Promise<readonly string[] | null> {
    const isAll = this.#times % HEADS_ALL_EVERY === 0;
    this.#times++;
    if (isAll) this.#sent.clear();
    const notes: string[] = [];
    for (const { line, note } of await this.#heads.now()) {
      if (this.#sent.get(line) === note) continue;
      this.#sent.set(line, note);
      notes.push(note);
    }
    // That there are none at all says something too: the other side compares what is here of its own line.
    if (notes.length === 0 && !isAll && ++this.#quiet < HEADS_QUIET_EVERY) return null;
    this.#quiet = 0;
    return notes;
  }
}
