import { describe, expect, it } from "vitest";
import type { StoredEvent } from "../../core/events/index.ts";
import { Registry } from "../../core/mesh/registry/index.ts";
import type { LinkView, MeshLinks } from "../../ports/mesh/links.ts";
import { meshSeen, meshStats } from "./mesh-stats.ts";

const IDLE: LinkView = {
  controller: null,
  direction: "dialled",
  url: null,
  connected: false,
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
const DOWN_MS = 600_000;

class Desk {
  readonly registry = new Registry();
  views: LinkView[] = [];
  #sequence = 0;

  says(eventType: StoredEvent["eventType"], entityId: string, payload: object): void {
    const event = { eventType, entityId, payload, sequence: ++this.#sequence, timestamp: 1_000 };
    this.registry.apply(event as unknown as StoredEvent);
  }

  registers(id: string, urls: readonly string[] = []): void {
    const ring = { controller: id, generation: 1, author: id, keys: [{ node: "n1", key: "k" }] };
    const payload = { url: `http://${id}-1`, name: id, urls, version: null, line: `${id}.1`, ring, metadata: {} };
    this.says("controller:registered", id, payload);
  }

  seen() {
    const links = { lacking: () => new Map(), views: () => this.views } as unknown as MeshLinks;
    const { forked, down } = meshSeen(this.registry, links, 1_000)!;
    return { forked, down: down.map(({ site }) => site) };
  }

  /** As `tenure_mesh_link_up` has it. */
  ups() {
    const counted = {
      fold: { counts: { pages: 0, events: 0, ignored: 0, malformed: 0 }, arrival: 0 },
      feeder: { lag: 0 },
      propagation: { snapshot: () => [] },
      registry: this.registry,
      lines: undefined,
      links: this.views,
      lacking: new Map(),
    };
    const { links } = meshStats(counted as unknown as Parameters<typeof meshStats>[0]);
    return Object.fromEntries(links.map(({ site, isConnected }) => [site, isConnected]));
  }
}

const parent = (controller: string | null, url: string, connected = false): LinkView => ({
  ...IDLE,
  controller,
  url,
  connected,
  downMs: connected ? null : DOWN_MS,
});

describe("alerts about other sites", () => {
  it("a site that has forked and was evicted is no alert any more: its operator may never come back", () => {
    const desk = new Desk();
    desk.registers("paris");
    desk.views = [parent("paris", "http://paris-1")];
    desk.says("controller:forked", "paris", { line: "paris.1" });
    expect(desk.seen()).toEqual({ forked: ["paris"], down: ["paris"] });
    desk.says("controller:evicted", "paris", { by: "ann", through: {} });
    expect(desk.seen()).toEqual({ forked: [], down: [] });
  });

  it("this site's own line has forked, until it has a new one", () => {
    const desk = new Desk();
    const own = (line: string, generation: number): void =>
      desk.says("controller:registered", "home", {
        name: "home",
        urls: [],
        line,
        generation,
        author: "home",
        keys: [],
      });
    own("home.1", 1);
    expect(desk.seen().forked).toEqual([]);
    desk.says("controller:forked", "home", { line: "home.1" });
    expect(desk.seen().forked).toEqual(["home"]);
    own("home.2", 2);
    expect(desk.seen().forked).toEqual([]);
  });

  it("an address of a linked site that never answered is no site that is out of reach", () => {
    const desk = new Desk();
    desk.registers("berlin", ["http://berlin-1", "http://berlin-2"]);
    desk.views = [
      parent("berlin", "http://berlin-1", true),
      parent(null, "http://berlin-2"),
      parent(null, "http://oslo-1"),
    ];
    expect(desk.seen().down).toEqual(["http://oslo-1"]);
    desk.views = [parent("berlin", "http://berlin-1"), parent(null, "http://berlin-2")];
    expect(desk.seen().down).toEqual(["berlin", "http://berlin-2"]);
  });
});

describe("tenure_mesh_link_up", () => {
  it("is not 0 for ever of a parent that has left or was evicted, nor of a site that only has something on its record", () => {
    const desk = new Desk();
    for (const id of ["berlin", "oslo", "paris", "rome"]) desk.registers(id);
    desk.says("controller:left", "berlin", { line: "berlin.1", sequence: 7 });
    desk.says("controller:evicted", "oslo", { by: "ann", through: {} });
    desk.views = [
      parent("berlin", "http://berlin-1"),
      parent("oslo", "http://oslo-1"),
      parent("rome", "http://rome-1"),
      { ...IDLE, controller: "paris", direction: "served", blamed: { flood: 1 } },
    ];
    expect(desk.ups()).toEqual({ rome: false });
  });

  it("is 0 of a site that dialled and is not heard of any more", () => {
    const desk = new Desk();
    desk.registers("paris");
    expect(desk.ups()).toEqual({});
    desk.says("controller:expired", "paris", {});
    expect(desk.ups()).toEqual({ paris: false });
    desk.registers("paris");
    expect(desk.ups()).toEqual({});
  });

  it("is of nobody at a site that has left its mesh", () => {
    const desk = new Desk();
    desk.registers("berlin");
    const own = {
      name: "home",
      urls: [],
      line: "home.1",
      generation: 1,
      author: "home",
      keys: [{ node: "n1", key: "k" }],
    };
    desk.says("controller:registered", "home", own);
    desk.views = [parent("berlin", "http://berlin-1")];
    expect(desk.ups()).toEqual({ berlin: false });
    desk.says("controller:left", "home", { by: "ann" });
    expect(desk.ups()).toEqual({});
  });
});
