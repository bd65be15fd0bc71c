// Kills families one batch at a time: a look at all processes blocks the event loop for milliseconds, and an agent that loses
// a hundred leases at once must not do a hundred times what one look can do for all. Renewals run between the looks.

import { type Family, type FamilyEnd, familyMembers, killFamilies } from "./family.ts";

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
      try {
        const families = batch.map(({ family }) => family);
        const end = await killFamilies(families, Math.max(...batch.map(({ withinMs }) => withinMs)));
        for (const { family, resolve } of batch) resolve(end.survivors === 0 ? end : own(family, end));
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#isBusy = false;
  }
}

/** Somebody survived: of whom? */
function own(family: Family, end: FamilyEnd): FamilyEnd {
  return { ...end, survivors: familyMembers(family)?.length ?? end.survivors };
}
