import { describe, expect, it } from "vitest";
import type { StoredEvent } from "../../core/events/index.ts";
import type { Job } from "../../core/jobs/model.ts";
import { JobChanges } from "./changes.ts";

const NO_HURRY = { isOver: false };
const changes = (): JobChanges => new JobChanges((id) => ({ id, finishedAtMs: 1 }) as Job);
const event = (what: string, id: string): StoredEvent =>
  ({ eventType: `build:${what}`, entityType: "build", entityId: id }) as StoredEvent;
const names = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, at) => `job-${from + at}`);

describe("changes of jobs for the views", () => {
  it("are taken in the order of a job's first change, also once others have come and gone", () => {
    const all = changes();
    const taken: string[] = [];
    let come = 0;
    while (taken.length < 5_000) {
      for (const id of names(come, (come += 37))) all.note(event("submitted", id));
      // Whoever changes again keeps its place.
      for (const id of names(taken.length, taken.length + 20)) all.note(event("building", id));
      taken.push(...all.take(25, NO_HURRY).jobs.map(({ id }) => id));
    }
    expect(taken).toEqual(names(0, taken.length));
  });

  it("of a job that was forgotten and sent again are at its new place, once", () => {
    const all = changes();
    for (const id of ["a", "b"]) all.note(event("submitted", id));
    all.note(event("forgotten", "a"));
    all.note(event("submitted", "a"));
    expect(all.take(9, NO_HURRY)).toMatchObject({ jobs: [{ id: "b" }, { id: "a" }], forgotten: [] });
    expect(all.size).toBe(0);
  });

  it("that the views did not take come again, and those that came meanwhile are not lost", () => {
    const all = changes();
    for (const id of names(0, 3)) all.note(event("completed", id));
    const refused = all.take(2, NO_HURRY);
    all.note(event("completed", "later"));
    all.giveBack(refused);
    expect(all.take(9, NO_HURRY).jobs.map(({ id }) => id)).toEqual(["job-2", "later", "job-0", "job-1"]);
  });

  it("of a job that was retried while the views refused it as finished are taken as it is now; as it was, where the book has dropped it", () => {
    const book = new Map<string, Job>();
    const all = new JobChanges((id) => book.get(id) ?? null);
    for (const id of ["retried", "dropped"]) {
      book.set(id, { id, finishedAtMs: 1 } as Job);
      all.note(event("completed", id));
    }
    const refused = all.take(9, NO_HURRY);
    book.set("retried", { id: "retried", finishedAtMs: null } as Job);
    for (const id of ["retried", "dropped"]) all.note(event("retried", id));
    book.delete("dropped");
    all.giveBack(refused);
    expect(all.take(9, NO_HURRY).jobs).toEqual([
      { id: "retried", finishedAtMs: null },
      { id: "dropped", finishedAtMs: 1 },
    ]);
  });
});
