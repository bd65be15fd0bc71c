import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  drawingOf,
  lagText,
  missingText,
  type LinkAnswer,
  linkText,
  ownSiteIn,
  type SitesAnswer,
  sitesOf,
} from "./sites.ts";

const LINK: LinkAnswer = {
  controller: "b",
  direction: "dialled",
  url: "http://b:1",
  connected: true,
  downMs: null,
  roundTripMs: 12,
  lagEvents: 0,
  lagMs: 0,
  missingEvents: 0,
  missingMs: 0,
  heardMsAgo: 100,
  problem: null,
  blamed: {},
};

const site = (id: string, status = "registered", url = `http://${id}:1`): SitesAnswer["sites"][number] => ({
  id,
  name: id,
  url,
  status,
  line: `${id}.1`,
  missingEvents: 0,
  missingMs: 0,
  lastEventAtMs: null,
  heardMsAgo: null,
});

function answer(links: readonly LinkAnswer[], sites = [site("b"), site("c")]): SitesAnswer {
  return { status: "signing", why: null, own: { controller: "a", name: "A", line: "a.1" }, sites, links };
}

const HEADS = ["a.1\n7\nroot\n", "b.1\n5\nroot\n"];

describe("the sites", () => {
  it("are this one and those that it knows; an edge is a link that it has, and nothing else", () => {
    const sites = sitesOf(answer([LINK]), HEADS);
    expect(sites.map(({ id, isOwn, events, links }) => [id, isOwn, events, links.length])).toEqual([
      ["a", true, 7, 0],
      ["b", false, 5, 1],
      ["c", false, 0, 0],
    ]);
  });

  it("a parent that was never reached is shown under its address", () => {
    const lost = { ...LINK, controller: null, connected: false, downMs: 700, heardMsAgo: null, url: "http://x:1" };
    const found = sitesOf(answer([lost]), []).find(({ id }) => id === "http://x:1");
    expect(found).toMatchObject({ status: "not registered", events: null, links: [{ state: "down" }] });
  });

  it("another address of a site that is linked is not cut off", () => {
    const spare = { ...LINK, url: "http://b:2", connected: false, heardMsAgo: null, roundTripMs: null };
    const [, b] = sitesOf(answer([LINK, spare]), HEADS);
    expect(b!.links.map(({ url, state }) => [url, state])).toEqual([["http://b:1", "live"]]);
  });

  it("what a site without a link has on its record is no edge", () => {
    const record = { ...LINK, url: null, direction: "served", connected: false, heardMsAgo: null } as const;
    expect(sitesOf(answer([record]), []).flatMap(({ links }) => links)).toEqual([]);
  });

  it("a site that had dialled and is cut off has an edge, with when it was heard; one that is known through others has none", () => {
    const cut = { ...site("b"), cutOffMs: 20_000, heardMsAgo: 20_000 };
    const [, b, c] = sitesOf(answer([], [cut, { ...site("c"), cutOffMs: null }]), HEADS);
    expect(b).toMatchObject({ isCutOff: true, links: [{ state: "down", direction: "served", heardMsAgo: 20_000 }] });
    expect(linkText(b!.links[0]!)).toBe("cut off, heard 20 s ago");
    expect(missingText(b!)).toBe("not known");
    expect([c!.isCutOff, c!.links, missingText(c!)]).toEqual([false, [], "none known"]);
  });

  it("what a site that is cut off has on its record stays with its edge", () => {
    const record = { ...LINK, url: null, direction: "served", connected: false, heardMsAgo: null } as const;
    const cut = { ...site("b"), cutOffMs: 5_000, heardMsAgo: 5_000 };
    const [, b] = sitesOf(answer([{ ...record, blamed: { flood: 2 } }], [cut]), []);
    expect(b!.links.map(({ blamed, heardMsAgo }) => [blamed, heardMsAgo])).toEqual([[{ flood: 2 }, 5_000]]);
  });

  it("a parent that is cut off has one edge, from here, also where only its address is known since this node leads", () => {
    const lost = { ...LINK, connected: false, downMs: 9_000, heardMsAgo: null, problem: "refused" };
    const cut = { ...site("b"), cutOffMs: 9_000, heardMsAgo: 9_000 };
    const before = { ...site("b"), cutOffMs: 9_000 };
    const texts = [
      sitesOf(answer([lost], [cut]), []),
      sitesOf(answer([{ ...lost, controller: null }], [before]), []),
    ].map((sites) => sites.map(({ id, links }) => [id, ...links.map((link) => [link.direction, linkText(link)])]));
    expect(texts).toEqual([
      [["a"], ["b", ["dialled", "cut off, heard 9.0 s ago"]]],
      [["a"], ["b", ["dialled", "cut off for 9.0 s"]]],
    ]);
  });

  it("a site's address is linked to only where it is one of a web page", () => {
    const urls = ["http://b:1", "javascript:alert(1)", "nowhere", "data:text/html,x"];
    const sites = urls.map((url, at) => site(`s${at}`, "registered", url));
    const found = sitesOf(answer([], sites), []).filter(({ isOwn }) => !isOwn);
    expect(found.map(({ url }) => url)).toEqual(["http://b:1", null, null, null]);
  });
});

describe("a link", () => {
  const textOf = (change: Partial<LinkAnswer>): string => {
    const [link] = sitesOf(answer([{ ...LINK, ...change }]), []).flatMap(({ links }) => links);
    return `${link?.state}: ${link === undefined ? "" : linkText(link)}`;
  };
  it.each<[Partial<LinkAnswer>, string]>([
    [{}, "live: 12 ms, in step"],
    [{ roundTripMs: null }, "live: in step"],
    [{ lagEvents: 1_200, missingEvents: 3 }, "live: 12 ms, 1,200 to send, 3 to get"],
    [{ heardMsAgo: 6_001 }, "stale: silent for 6.0 s"],
    [{ connected: false }, "down: cut off, heard 100 ms ago"],
    [{ connected: false, heardMsAgo: null, downMs: 4_000 }, "down: cut off for 4.0 s"],
  ])("%j is %s", (change, text) => expect(textOf(change)).toBe(text));

  it("says which way the events are missing", () => {
    expect(lagText({ lagEvents: 0, missingEvents: 2, isHeld: false })).toBe("2 to get");
  });

  it("says that events are held back while this site is gated, and not those that it passes on", () => {
    const textOf = (state: string, lagMs: number): string[] =>
      sitesOf({ ...answer([{ ...LINK, lagEvents: 1, lagMs }]), gate: { state } }, [])
        .flatMap(({ links }) => links)
        .map(lagText);
    expect([textOf("comparing", 0), textOf("behind", 0), textOf("comparing", 900), textOf("open", 0)]).toEqual([
      ["1 held back until this site signs"],
      ["1 held back until this site signs"],
      ["1 to send"],
      ["1 to send"],
    ]);
  });
});

it("nobody is drawn outside of the picture or upon another, however many there are", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 40 }), (count) => {
      const others = Array.from({ length: count }, (_, at) => site(`s${at}`));
      const { width, height, places } = drawingOf(sitesOf(answer([], others), []));
      const all = [...places.values()];
      expect(all).toHaveLength(count + 1);
      for (const { x, y } of all) expect(x > 40 && x < width - 40 && y > 40 && y < height - 40).toBe(true);
      for (const [at, one] of all.entries()) {
        for (const other of all.slice(at + 1)) {
          expect(Math.hypot(one.x - other.x, one.y - other.y), `${count} sites`).toBeGreaterThan(44);
        }
      }
    }),
  );
});

it("this site has a name for the bar where it takes part in a mesh", () => {
  const own = (name: string, metadata: object) =>
    ownSiteIn({
      controllers: [
        { id: "b", name: "Berlin", status: "registered", metadata: { line: "b.1" } },
        { id: "a", name, status: "own", metadata: { ...metadata } },
      ],
    });
  const line = { line: "a.1" };
  expect([own("Aachen", line), own("a", line), own("", line), own("Aachen", {})]).toEqual([
    "a (Aachen)",
    "a",
    "a",
    null,
  ]);
});

it("what is missing of a site is counted, or said not to be known here", () => {
  expect(missingText({ isOwn: true, isCutOff: false, missing: null })).toBe("-");
  expect(missingText({ isOwn: false, isCutOff: false, missing: null })).toBe("?");
  expect(missingText({ isOwn: false, isCutOff: false, missing: { events: 0, ms: 0 } })).toBe("none known");
  expect(missingText({ isOwn: false, isCutOff: false, missing: { events: 1_200, ms: 61_000 } })).toMatch(
    /^1,200 for 1/,
  );
});
