import { expect, it } from "vitest";
import type { LinkView } from "../../ports/mesh/links.ts";
import type { MeshSites } from "./command.ts";
import { provenText, statusText } from "./view.ts";

const LINK: LinkView = {
  controller: "oslo",
  direction: "dialled",
  url: "http://127.0.0.1:7521",
  connected: true,
  downMs: null,
  roundTripMs: null,
  lagEvents: 0,
  lagMs: 0,
  missingEvents: 0,
  missingMs: 0,
  skewMs: null,
  heardMsAgo: null,
  problem: null,
  blamed: {},
};

function shown(link: Partial<LinkView>): string | undefined {
  const sites: MeshSites = {
    nodeKey: "key",
    status: "signing",
    why: null,
    gate: { state: "open", sinceMs: 0, missing: [], why: null },
    leftAt: null,
    own: null,
    sites: [],
    links: [{ ...LINK, ...link }],
  };
  return statusText(sites)
    .split("\n")
    .find((line) => line.startsWith("link"))
    ?.replace(/^link +/, "");
}

it("says of each link what was refused from the site, also where it has no link any more", () => {
  expect(shown({})).toBe("to oslo (http://127.0.0.1:7521): in step");
  const blamed = { malformed: 24, "unknown-line": 5 };
  expect(shown({ blamed })).toBe("to oslo (http://127.0.0.1:7521): in step, refused: 24 malformed, 5 unknown-line");
  expect(shown({ blamed, url: null, connected: false })).toBe(
    "oslo: no link now, refused: 24 malformed, 5 unknown-line",
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
