// When schedules fire, on the leader. For each the next time is known; one is looked at anew when it has changed, has fired, or
// was refused. Times that passed are caught up with as the schedule says (core/jobs/decide/catch-up.ts).
//
//   unseen ──▶ walking through its times ──none is due──▶ waiting for the next one ──due──▶ unseen
//                       └──some are──▶ firing, one after the other ──▶ fired ──applied, or after a while──▶ unseen
//
// All of it goes by the wall clock: people wrote these times down. A clock that is set back fires nothing twice, because the
// book knows up to which time each has fired; one that is set forward passes times, and these are missed ones.
//
// Invariants:
// - A turn works for as long as its slice lasts and one step, whatever there is to do (docs/decisions/0023-turns-by-time.md): a step is one
//   question for a time, or one command.
// - Of one schedule times are fired in order and without a gap, also where a turn, a refusal or a rollback comes in between: to
//   fire a time is to give up all before it. So each command is run only where the head is where the last one left it, and a
//   schedule that has changed meanwhile is walked through anew.

import { type CommandOf, type DueTimes, DueWalk } from "../../core/jobs/index.ts";
import type { Schedule } from "../../core/jobs/model.ts";
import type { Clock } from "../../ports/clock.ts";
import type { SiteJournal } from "../journal/site-journal.ts";
import { Leases } from "../leases.ts";
import type { Slice } from "../slice.ts";
import { SCHEDULE_RETRY_MS, SCHEDULE_ROLLBACK_RETRY_MS } from "./limits.ts";

/** Names in `#next` and `#fired` have no epochs. */
const ANY = 0;

type Command = CommandOf<"fire-schedule">;

export interface JobsSchedulesOptions {
  readonly clock: Clock;
  readonly fold: SiteJournal;
  readonly nextFire: (cron: string, timeZone: string, afterMs: number) => number | null;
  /** Decides in this turn. */
  readonly run: (command: Command) => void;
}

/** The schedule that is worked on. */
interface Work {
  readonly name: string;
  /** As it was when this began: another one is another object. */
  readonly schedule: Schedule;
  readonly walk: DueWalk;
  /** Up to where the head has fired, as far as this work knows. */
  upToMs: number;
  /** What is to be run, the next one last; null: not known yet. */
  commands: Command[] | null;
}

export class JobsSchedules {
  readonly #options: JobsSchedulesOptions;
  readonly #unseen: Set<string>;
  #work: Work | null = null;
  /** When the next time is, in wall time. */
  readonly #next = new Leases();
  /** When it is looked at again, on the monotonic clock. */
  readonly #retries = new Leases();
  /** By name: what was fired of which schedule, and is not all applied. */
  readonly #fired = new Map<string, Pick<Work, "schedule" | "upToMs">>();

  constructor(options: JobsSchedulesOptions) {
    this.#options = options;
    this.#unseen = new Set(options.fold.book.applied.scheduleNames());
  }

  /** An event about it was applied. */
  changed(name: string): void {
    const known = this.#options.fold.book.applied.schedule(name);
    // Its own firing, on the way.
    if (this.#work?.name === name) {
      if (known?.schedule === this.#work.schedule) return;
      this.#work = null;
    }
    const fired = this.#fired.get(name);
    if (fired !== undefined && known?.schedule === fired.schedule && known.firedUpToMs < fired.upToMs) return;
    this.#lookAgain(name);
  }

  /** In how long something is to be done. */
  inMs(): number {
    if (this.#work !== null || this.#unseen.size > 0) return 0;
    const { clock } = this.#options;
    return Math.min(this.#next.nextMs - clock.wallMs(), this.#retries.nextMs - clock.monotonicMs());
  }

  /** Does what is to be done, until the slice of this turn is used up. */
  look(slice: Pick<Slice, "isOver">): void {
    do {
      const work = this.#work;
      if (work === null) {
        if (!this.#begin()) return;
      } else if (work.commands === null) this.#walk(work);
      else this.#fire(work, work.commands);
    } while (!slice.isOver);
  }

  #lookAgain(name: string): void {
    this.#next.drop(name);
    this.#retries.drop(name);
    this.#fired.delete(name);
    this.#unseen.add(name);
  }

  /** Takes up the next one; false: there is none. */
  #begin(): boolean {
    const { clock, fold, nextFire } = this.#options;
    const name = this.#unseen.values().next().value ?? this.#due();
    if (name === undefined) return false;
    this.#unseen.delete(name);
    const known = fold.book.head.schedule(name);
    if (known === null || known.schedule.paused) {
      this.#rest(name, null);
      return true;
    }
    const { schedule, firedUpToMs: upToMs } = known;
    const { cron, timeZone, catchUp } = schedule;
    const next = (afterMs: number): number | null => {
      try {
        return nextFire(cron, timeZone, afterMs);
      } catch {
        // Whoever took it knew this zone, and this node does not. It does not fire here; everything else goes on.
        return null;
      }
    };
    const walk = new DueWalk(catchUp, next, upToMs, clock.wallMs());
    this.#work = { name, schedule, walk, upToMs, commands: null };
    return true;
  }

  /** One whose next time has come, or that is to be looked at again. */
  #due(): string | undefined {
    const { clock } = this.#options;
    const [due] = this.#next.takeOver(clock.wallMs(), 1, 1);
    const one = due ?? this.#retries.takeOver(clock.monotonicMs(), 1, 1)[0];
    if (one !== undefined) this.#lookAgain(one.key);
    return one?.key;
  }

  #walk(work: Work): void {
    const due = work.walk.step();
    if (due === null) return;
    const commands = commandsOf(work.name, due);
    if (commands.length > 0) work.commands = commands;
    else {
      this.#work = null;
      this.#rest(work.name, due.nextMs);
    }
  }

  #fire(work: Work, commands: Command[]): void {
    const { name } = work;
    const { clock, fold, run } = this.#options;
    const { head } = fold.book;
    const before = head.schedule(name);
    if (before?.schedule !== work.schedule || before.firedUpToMs !== work.upToMs) {
      // It has changed, or what was fired is taken back: the log had no room for it.
      this.#work = null;
      return this.#retries.start(name, ANY, SCHEDULE_ROLLBACK_RETRY_MS, clock.monotonicMs());
    }
    const command = commands.pop()!;
    run(command);
    const isTaken = head.schedule(name)?.firedUpToMs === command.atMs;
    if (isTaken) work.upToMs = command.atMs;
    if (isTaken && commands.length > 0) return;
    this.#work = null;
    this.#fired.set(name, work);
    this.#retries.start(name, ANY, SCHEDULE_RETRY_MS, clock.monotonicMs());
    // By now all of it may be applied.
    if (isTaken) this.changed(name);
  }

  /** Nothing of it is due. What is proposed and not applied may be taken back, and nobody would say so. */
  #rest(name: string, nextMs: number | null): void {
    const { fold, clock } = this.#options;
    const [head, applied] = [fold.book.head.schedule(name), fold.book.applied.schedule(name)];
    const isApplied = head?.schedule === applied?.schedule && head?.firedUpToMs === applied?.firedUpToMs;
    if (!isApplied) this.#retries.start(name, ANY, SCHEDULE_RETRY_MS, clock.monotonicMs());
    if (nextMs !== null) this.#next.start(name, ANY, nextMs, 0);
  }
}

function commandsOf(name: string, { fire, missedMs }: DueTimes): Command[] {
  const commands: Command[] = fire.map((atMs) => ({ kind: "fire-schedule", name, atMs }));
  if (missedMs !== null) commands.push({ kind: "fire-schedule", name, atMs: missedMs, isMissed: true });
  return commands.toReversed();
}
