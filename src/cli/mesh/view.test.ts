import { expect, it } from "vitest";
import { PLAIN } from "../kit/colour.ts";
import type { MeshSites, ShownSite } from "./command.ts";
import { sitesTable, statusText } from "./view.ts";

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
