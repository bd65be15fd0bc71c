// Homes that decided nothing the last time they were asked to: silent ones, and those that refused without a record (they can't write). Whatever is prepared
// for such a home stays locked until it decides again, so nothing is begun with it until then.
//
//   (decides) ──silent, or refused for a reason that lasts──▶ noted ──asked, again and again──▶ it decides ──▶ (forgotten)
//                                                              └──silent, and it answers any call──────────┘
//
// Invariants: one question to a home is under way, however many transactions wait for its answer; all of it is of one term of this node.

import { type AfterAsking, afterAsking, type Heard, isUndecidedAtHome } from "../../../core/txn/course.ts";
import type { BackendHash, TcFence } from "../../../core/txn/model.ts";
import type { Random } from "../../../core/kit/random.ts";
import { retryInMs, sleep } from "../../../loops/time.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { CoordinatorTerm, IslandCalls } from "../../../ports/transactions.ts";
import { TXN_CALL_MS, TXN_HOME_RETRY_MS_MAX, TXN_HOME_RETRY_MS_MIN } from "./limits.ts";
import { isSameFence } from "./same-fence.ts";

export interface UndecidingOptions {
  readonly term: Pick<CoordinatorTerm, "fence">;
  readonly calls: IslandCalls;
  readonly clock: Clock;
  readonly random: Random;
}

type Undecided = Exclude<AfterAsking, { readonly kind: "begin" }>;

interface Note {
  readonly fence: TcFence;
  /** What it said last, or that it said nothing. */
  why: Undecided;
  isSilent: boolean;
  /** Resolves when the question that is under way is answered, or given up. */
  question: Promise<unknown>;
}

export class Undeciding {
  readonly #options: UndecidingOptions;
  readonly #homes = new Map<BackendHash, Note>();
  /** Homes with a loop, noted or not: another note waits for its next turn. */
  readonly #asked = new Map<BackendHash, TcFence>();

  constructor(options: UndecidingOptions) {
    this.#options = options;
  }

  /** Null: it decides, as far as is known. */
  of(home: BackendHash): Readonly<Note> | null {
    const note = this.#homes.get(home);
    return note !== undefined && isSameFence(this.#options.term.fence(), note.fence) ? note : null;
  }

  /** What came of a call to this island. `isHome`: of the transaction that it was about. */
  note(island: BackendHash, fence: TcFence, heard: Heard, isHome: boolean): void {
    // An answer to a call of a former term may come late, and must not take the place of what is noted in this one.
    if (heard === "lost" || !isSameFence(this.#options.term.fence(), fence)) return;
    if (isHome && isUndecidedAtHome(heard)) return this.#add(island, fence, heard);
    // It answers, which a silent one did not. One that refused may do what it does here, and refuse to decide all the same.
    if (heard !== "silent" && this.#homes.get(island)?.isSilent === true) this.#homes.delete(island);
  }

  #add(home: BackendHash, fence: TcFence, heard: Heard): void {
    const why = afterAsking(home, heard);
    if (why.kind === "begin" || isSameFence(this.#homes.get(home)?.fence ?? null, fence)) return;
    const note: Note = { fence, why, isSilent: heard === "silent", question: Promise.resolve() };
    this.#homes.set(home, note);
    if (!isSameFence(this.#asked.get(home) ?? null, fence)) void this.#askUntilItDecides(home, fence);
  }

  async #askUntilItDecides(home: BackendHash, fence: TcFence): Promise<void> {
    const { calls, clock, random } = this.#options;
    this.#asked.set(home, fence);
    const noteOf = (): Note | null => {
      const note = this.#homes.get(home);
      return note !== undefined && isSameFence(note.fence, fence) ? note : null;
    };
    for (let times = 0; noteOf() !== null && this.#mayAsk(home, fence); times++) {
      const question = calls.call(home, { kind: "recover", fence, after: LAST_ID }, TXN_CALL_MS);
      noteOf()!.question = question;
      const heard = (await question) ?? "silent";
      const after = afterAsking(home, heard);
      if (after.kind === "begin") break;
      const note = noteOf();
      if (note !== null) Object.assign(note, { why: after, isSilent: heard === "silent" });
      await sleep(clock, retryInMs(random, times, TXN_HOME_RETRY_MS_MIN, TXN_HOME_RETRY_MS_MAX));
    }
    if (noteOf() !== null) this.#homes.delete(home);
    if (this.#asked.get(home) === fence) this.#asked.delete(home);
  }

  #mayAsk(home: BackendHash, fence: TcFence): boolean {
    const { term, calls } = this.#options;
    return isSameFence(term.fence(), fence) && calls.islands().includes(home);
  }
}

/** No id comes after it: nothing is listed. */
const LAST_ID = "ffffffff-ffff-7fff-bfff-ffffffffffff";
