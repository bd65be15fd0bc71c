// Kills families one batch at a time: a look at all processes blocks the event loop for milliseconds, and an agent that loses
// a hundred leases at once must not do a hundred times what one look can do for all. Renewals run between the looks.

import { setTimeout as sleep } from "node:timers/promises";
import { type Family, type FamilyEnd, familyMembers, killFamilies } from "./family.ts";
import { REAPER_PATIENCE_MS } from "./limits.ts";

interface Request {
  readonly family: Family;
  readonly withinMs: number;
  readonly resolve: (end: FamilyEnd) => void;
  readonly reject: (error: unknown) => void;
}

export class Reaper {
  #waiting: Request[] = [];
  #isBusy = false;

  /** The families of one reaper have cookies of one name. */
  kill(family: Family, withinMs: number): Promise<FamilyEnd> {
    const { promise, resolve, reject } = Promise.withResolvers<FamilyEnd>();
    this.#waiting.push({ family, withinMs, resolve, reject });
    if (!this.#isBusy) void this.#work();
    return promise;
  }

  async #work(): Promise<void> {
    this.#isBusy = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      const killing = kill(batch).catch((error: unknown) => {
        for (const { reject } of batch) reject(error);
      });
      // One that nothing kills must not keep the next ones waiting.
      await Promise.race([killing, sleep(REAPER_PATIENCE_MS, undefined, { ref: false })]);
    }
    this.#isBusy = false;
  }
}

async function kill(batch: readonly Request[]): Promise<void> {
  const families = batch.map(({ family }) => family);
  const end = await killFamilies(families, Math.max(...batch.map(({ withinMs }) => withinMs)));
  for (const { family, resolve } of batch) resolve(end.survivors === 0 ? end : own(family, families, end));
}

/** Somebody survived: of whom? Who is known by nothing any more, because its parents are dead, may be anybody's. */
function own(family: Family, all: readonly Family[], end: FamilyEnd): FamilyEnd {
  const members = all.map((one) => new Set(familyMembers(one)?.map(({ pid }) => pid)));
  const mine = members[all.indexOf(family)]!;
  const left = end.left.filter(({ pid }) => mine.has(pid) || !members.some((one) => one.has(pid)));
  return { ...end, left, survivors: end.left.length === 0 ? end.survivors : left.length };
}
