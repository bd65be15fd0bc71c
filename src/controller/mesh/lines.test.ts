// The lines of this site and of others, by name.

import { expect, test } from "vitest";
import { Lines, type LinesOptions } from "./lines.ts";

const HERE = `a.${"0".repeat(32)}`;

test("of a line that is not here yet there are no events: a link to whoever has it can be shown", () => {
  const own = { lines: () => [HERE], size: () => 7 } as unknown as LinesOptions["own"];
  const lines = new Lines({ own, sites: () => [] } as unknown as LinesOptions);
  expect(lines.size(HERE)).toBe(7);
  expect(lines.size(`b.${"1".repeat(32)}`)).toBe(0);
});
