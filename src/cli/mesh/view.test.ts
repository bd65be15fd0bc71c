import { expect, it } from "vitest";
import type { LinkView } from "../../ports/mesh/links.ts";
import { PLAIN } from "../kit/colour.ts";
import type { MeshSites, ShownSite } from "./command.ts";
import { provenText, sitesTable, statusText } from "./view.ts";

const SITE: ShownSite = {
  id: "paris",
  name: "Paris",
  url: "http://paris:1",
  status: "registered",
  line: "paris.1",
  ring: null,
  size: 7,
  lastEventAtMs: null,
  missingEvents: 0,
  missingMs: 0,
  heardMsAgo: null,
};

function answer(change: Partial<ShownSite>): MeshSites {
  return {
    nodeKey: "key",
    status: "signing",
    why: null,
    gate: { state: "open", sinceMs: 0, missing: [], why: null },
    leftAt: null,
    own: null,
    sites: [{ ...SITE, ...change }],
    links: [],
  };
}

it.each<[string, Partial<ShownSite>, RegExp, RegExp]>([
  [
    "of an earlier release",
    {},
    / registered  7       0        -      /,
    /registered, 7 .*none known.*no link to it here/,
  ],
  [
    "known through others",
    { cutOffMs: null },
    / registered  7       0        -      /,
    /registered, 7 .*none known.*no link to it here/,
  ],
  [
    "cut off",
    { cutOffMs: 20_000, heardMsAgo: 20_000 },
    / registered, cut off  7       \?        20.0s ago  /,
    /registered, cut off, 7 .*missing is not known, heard 20.0s ago/,
  ],
  [
    "cut off, with events that another site has",
    { cutOffMs: 20_000, heardMsAgo: 20_000, missingEvents: 3, missingMs: 1_000 },
    / registered, cut off  7       3        20.0s ago  /,
    /registered, cut off, 7 .*3 missing for 1.0s, heard 20.0s ago/,
  ],
  [
    "cut off before this node led",
    { cutOffMs: 20_000 },
    / registered, cut off for 20.0s or longer  7       \?        -      /,
    /cut off for 20.0s or longer, 7 .*not heard since this node leads/,
  ],
])("a site that is %s", (_, change, inTable, inStatus) => {
  expect(sitesTable(answer(change), PLAIN)).toMatch(inTable);
  expect(statusText(answer(change))).toMatch(inStatus);
});

const LINK = {
  controller: "paris",
  direction: "served",
  url: null,
  connected: true,
  downMs: null,
  roundTripMs: null,
  lagEvents: 1,
  lagMs: 0,
  missingEvents: 0,
  missingMs: 0,
  skewMs: null,
  heardMsAgo: 100,
  problem: null,
  blamed: {},
} as const;

it.each([
  ["open", 0, "from paris: 1 to send\n"],
  ["open", 2_500, "from paris: 1 to send, for 2.5s\n"],
  ["comparing", 0, "from paris: 1 held back until this site signs\n"],
  ["behind", 0, "from paris: 1 held back until this site signs\n"],
  ["comparing", 2_500, "from paris: 1 to send, for 2.5s\n"],
] as const)("a link of a site whose gate is %s, with an age of %i ms, says why it is late", (state, lagMs, text) => {
  const gate = { state, sinceMs: 0, missing: [], why: null } as unknown as MeshSites["gate"];
  expect(statusText({ ...answer({}), gate, links: [{ ...LINK, lagMs }] })).toContain(text);
});

function shown(link: Partial<LinkView>): string | undefined {
  const dialled = { ...LINK, direction: "dialled", url: "http://127.0.0.1:7521", lagEvents: 0 } as const;
  return statusText({ ...answer({}), links: [{ ...dialled, ...link }] })
    .split("\n")
    .find((line) => line.startsWith("link"))
    ?.replace(/^link +/, "");
}

it("says of each link what was refused from the site, also where it has no link any more", () => {
  expect(shown({})).toBe("to paris (http://127.0.0.1:7521): in step");
  const blamed = { malformed: 24, "unknown-line": 5 };
  expect(shown({ blamed })).toBe("to paris (http://127.0.0.1:7521): in step, refused: 24 malformed, 5 unknown-line");
  expect(shown({ blamed, url: null, connected: false })).toBe(
    "paris: no link now, refused: 24 malformed, 5 unknown-line",
  );
  expect(shown({ url: null, connected: false }), "nothing to say of it").toBeUndefined();
});

it("says of a line that is followed by another generation why it ends where it does", () => {
  const line = { line: "paris.0", generation: 1, first: 1, through: 7, withheld: 0, ringChanges: 0, root: "" };
  const next = { ...line, line: "paris.1", generation: 2, first: 8, through: 9 };
  const text = provenText({ controller: "paris", lines: [line, next], ringHash: "ab", isPinned: false }, 1);
  const [, old, last] = text.split("\n");
  expect(old).toBe(
    "  paris.0 (generation 1): events 1 to 7, 0 of them withheld, 0 changes of keys; it ends there, because the site began generation 2",
  );
  expect(last).toBe("  paris.1 (generation 2): events 8 to 9, 0 of them withheld, 0 changes of keys");
});
