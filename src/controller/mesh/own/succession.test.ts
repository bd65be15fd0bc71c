import { expect, test } from "vitest";
import type { EventDraft } from "../../../core/events/index.ts";
import type { OwnPlace } from "../../../core/mesh/registry/index.ts";
import { toBase64 } from "../../../core/mesh/proof/index.ts";
import type { JournalReign } from "../../journal/journal-reign.ts";
import type { JournalService } from "../../journal/service.ts";
import { continueLines } from "./succession.ts";
import { systemDigest as digest } from "../../../drivers/system/digest.ts";
import { OwnSiteStage } from "./test-own-site.ts";

/** What a new reign writes in the turn in which it begins. */
function begun(stage: OwnSiteStage, author: string, gated: OwnPlace | null = null): EventDraft[] {
  const written: EventDraft[] = [];
  const write = (drafts: readonly EventDraft[]): Promise<void> => {
    written.push(...drafts);
    return Promise.reject(new Error("not committed"));
  };
  const serve = ((begin: (reign: JournalReign) => unknown) =>
    begin({ nowMs: 5, skippedMs: 0, write } as never)) as never;
  continueLines({
    journal: { serve } as Pick<JournalService, "serve">,
    fold: stage.fold,
    head: () => {
      const { size: sequence, ...rest } = stage.point(stage.all.length);
      return { sequence, ...rest };
    },
    author: () => author,
    newId: () => "id",
    renewed: () => null,
    gated: () => gated,
  });
  return written;
}

test("a recovered cluster names where its line has ended, first of all and once", () => {
  const stage = new OwnSiteStage(digest);
  stage.ring("n1");
  stage.grow(4);
  const { line } = stage.fold.lines!.generations[0]!;
  const { hash, frontier } = stage.point(5);
  expect(begun(stage, "c-2")).toEqual([
    {
      id: "id",
      eventType: "controller:recovered",
      entityType: "controller",
      entityId: "alpha",
      payload: { line, through: 5, hash, frontier: toBase64(frontier) },
      timestamp: 5,
    },
  ]);
  stage.recover();
  expect(begun(stage, "c-2"), "it is written").toEqual([]);
});

test("the same cluster goes on, and a site without a ring has no line to continue", () => {
  const stage = new OwnSiteStage(digest);
  stage.grow(3);
  expect(begun(stage, "c-2")).toEqual([]);
  stage.ring("n1");
  expect(begun(stage, "c-one")).toEqual([]);
});

test("a site that is recovered while it is gated ends its line where it was gated: peers may have another history after that", () => {
  const stage = new OwnSiteStage(digest);
  stage.ring("n1");
  stage.grow(4);
  const { hash, frontier } = stage.point(5);
  const place = { through: 5, hash, frontier: toBase64(frontier) };
  stage.grow(7);
  const { line } = stage.fold.lines!.generations[0]!;
  expect(begun(stage, "c-2", place).map(({ payload }) => payload)).toEqual([{ line, ...place }]);
});
