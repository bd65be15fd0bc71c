import { expect, test } from "vitest";
import type { Receipt } from "../../../core/mesh/receipts/index.ts";
import { SITES_MEASURED_MAX } from "../limits.ts";
import { Propagation } from "./propagation.ts";

const encoder = new TextEncoder();

function receipt(
  line: string,
  atMs: number,
  writtenMs: readonly (number | null)[],
  more: Partial<Receipt> = {},
): Receipt {
  const items = writtenMs.map((ms) =>
    ms === null ? { hash: "ab" } : { bytes: encoder.encode(`{"payload":{"timestamp":1},"timestamp":${ms}}`) },
  );
  return { epoch: 3, timestamp: atMs, first: 1, page: { line, after: 0, items, checkpoint: "" }, ...more } as Receipt;
}

test("times are between an event's clock and this site's, without the difference that was measured", () => {
  const propagation = new Propagation({ epoch: () => 3, skewMs: (site) => (site === "far" ? 40 : null) });
  // Written at 1,000.5 by a clock that is 40 ms ahead: at 960.5 of ours.
  propagation.applied(receipt("far.0", 1_000, [1_000.5, null, 1_030]));
  propagation.applied(receipt("near.0", 1_000, [400, 900], { first: 2 }));
  propagation.applied(receipt("near.0", 1_000, [1_500]));
  const shown = propagation.snapshot().map(({ site, histogram: { count, sum } }) => [site, count, sum]);
  expect(shown).toEqual([
    ["far", 2, 39.5 + 10],
    ["near", 2, 100 + 0],
  ]);
});

test("what another leader took, and what is applied again, counts nowhere", () => {
  const propagation = new Propagation({ epoch: () => 4, skewMs: () => null });
  propagation.applied(receipt("far.0", 1_000, [900]));
  expect(propagation.snapshot()).toEqual([]);
});

test("past the limit sites are counted together", () => {
  const propagation = new Propagation({ epoch: () => 3, skewMs: () => null });
  for (let at = 0; at < SITES_MEASURED_MAX + 5; at++) propagation.applied(receipt(`s${at}.0`, 1_000, [900]));
  const shown = propagation.snapshot();
  expect(shown).toHaveLength(SITES_MEASURED_MAX + 1);
  expect(shown.at(-1)).toMatchObject({ site: "other", histogram: { count: 5 } });
});
