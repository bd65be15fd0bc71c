// Where a line of a later generation begins is found by hashing all of the line before it (KnownLines.begin): seconds of the leader's time where
// that has a million events. Nobody makes a site do that with a page that no key of the line has signed.

import { expect, test } from "vitest";
import type { LineState, Page } from "../../../core/mesh/model.ts";
import { emptyLine } from "../../../core/mesh/proof/index.ts";
import { fakeVerify } from "../../../core/mesh/test-signatures.ts";
import { ringOf, TestSite } from "../../../core/mesh/test-site.ts";
import { systemDigest as digest } from "../../../drivers/system/digest.ts";
import { HandClock } from "../../../loops/test-clock.ts";
import { Blame } from "./blame.ts";
import { IntakeQueue } from "./intake-queue.ts";

test("what is before a line is not read for a page that no key of the line has signed", async () => {
  const site = new TestSite(ringOf("a", ["n1"], digest, 2), digest);
  site.writeMany(3);
  const blame = new Blame();
  let begun = 0;
  const begin = async (): Promise<LineState> => {
    begun++;
    return emptyLine(site.ring, digest);
  };
  const queue = new IntakeQueue({
    clock: new HandClock(),
    digest,
    verify: fakeVerify(digest),
    lines: {
      isOwn: () => false,
      isWanted: () => true,
      isOthers: () => false,
      stateOf: () => null,
      firstRingOf: () => site.ring,
      begin,
    },
    blame,
    said: async () => undefined,
    receive: () => Promise.reject(new Error("nothing is received here")),
    suspected: () => undefined,
  });
  const page = site.page(0, 3);
  const stranger = new TestSite(ringOf("a", ["x9"], digest, 2), digest);
  const forged: Page = { ...page, checkpoint: site.sign(site.checkpoint(3, 0), "n1", stranger.signer("x9")) };
  expect(await queue.take("hostile", forged)).toMatchObject({ line: site.line, error: "EVENT_INVALID" });
  expect([begun, blame.of("hostile")]).toEqual([0, { invalid: 1 }]);
});
