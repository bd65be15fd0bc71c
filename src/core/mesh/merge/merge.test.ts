import { describe, expect, test } from "vitest";
import { systemDigest as digest } from "../../../drivers/system/digest.ts";
import { seededRandom } from "../../kit/random.ts";
import { type LineEvent, type LineStanding, Projection, type ShownJob, shownController, shownJob } from "./index.ts";
import { disordered, JOBS, lineEvent, MemoryRows, oracleHash, oracleJobs, worldOf } from "./test-worlds.ts";

const WORLDS = 3_000;
const open = (): LineStanding => ({ mark: null, through: null });

function projected(events: readonly LineEvent[]): MemoryRows {
  const rows = new MemoryRows();
  const projection = new Projection(rows, digest);
  for (const event of events) projection.apply(event);
  return rows;
}

function standing(rows: MemoryRows, marks: Readonly<Record<string, "forked" | "evicted">> = {}) {
  return (line: string): LineStanding => ({ mark: marks[line] ?? null, through: rows.ends.get(line) ?? null });
}

describe("the same events, in any order and any number of times", () => {
  test("give the rows that the history of each line gives, and their hash", () => {
    let withJobs = 0;
    for (let seed = 0; seed < WORLDS; seed++) {
      const events = worldOf(seed);
      const rows = projected(disordered(events, seededRandom(`order ${seed}`)));
      const expected = oracleJobs(events);
      withJobs += expected.length > 0 ? 1 : 0;
      const live = [...rows.rows.values()].flatMap(({ row, isGone }) =>
        row.kind === "job" && !isGone ? [row.row] : [],
      );
      expect(live.length, `seed ${seed}`).toBe(expected.length);
      for (const { line, id, ...last } of expected) {
        const row = live.find((one) => one.line === line && one.id === id)!;
        for (const part of ["spec", "state", "run"] as const) {
          expect(row[part]?.eventId ?? null, `seed ${seed}: ${part} of ${id} on ${line}`).toBe(
            last[part]?.event.id ?? null,
          );
        }
      }
      expect(rows.hash(), `seed ${seed}`).toBe(oracleHash(rows.texts(), digest));
    }
    expect(withJobs).toBeGreaterThan(WORLDS / 2);
  });

  test("give equal rows, equal hashes and equal jobs in two orders", () => {
    for (let seed = 0; seed < WORLDS; seed++) {
      const events = worldOf(seed);
      const [one, other] = ["a", "b"].map((order) => projected(disordered(events, seededRandom(`${order} ${seed}`))));
      expect(one!.texts(), `seed ${seed}`).toEqual(other!.texts());
      expect(one!.hash(), `seed ${seed}`).toBe(other!.hash());
      for (const id of JOBS) {
        const [first, second] = [one!, other!].map((rows) => shownJob(rows.jobRows(id), open));
        expect(first, `seed ${seed}`).toEqual(second);
        expect(first?.site ?? null, `seed ${seed}`).toBe(oracleWinner(events, id));
      }
    }
  });

  test("one event less gives another hash", () => {
    const events = worldOf(5).filter(({ event }) => event.eventType === "build:submitted");
    expect(events.length).toBeGreaterThan(0);
    expect(projected(events.slice(1)).hash()).not.toBe(projected(events).hash());
  });
});

/** By sorting all claims. */
function oracleWinner(events: readonly LineEvent[], id: string): string | null {
  const claims = oracleJobs(events)
    .filter((job) => job.id === id)
    .map((job) => {
      const { event } = (job.spec ?? job.run ?? job.state)!;
      const { origin } = event.payload as { origin?: { ownerEpoch?: unknown } | null };
      const said = event.eventType === "build:submitted" ? origin?.ownerEpoch : undefined;
      const epoch = Number.isInteger(said) && (said as number) > 0 ? (said as number) : 1;
      return { site: job.line.split(".")[0]!, epoch: job.spec === null ? 0 : epoch, event };
    });
  claims.sort(
    (a, b) => b.epoch - a.epoch || a.event.timestamp - b.event.timestamp || (a.event.id < b.event.id ? -1 : 1),
  );
  return claims[0]?.site ?? null;
}

interface Told {
  readonly line?: string;
  readonly generation?: number;
  readonly sequence: number;
  readonly eventType: `${string}:${string}`;
  readonly entityId?: string;
  readonly timestamp?: number;
  readonly id?: string;
  readonly payload?: LineEvent["event"]["payload"];
}

function told({ line = "a.1", generation = 1, sequence, ...event }: Told): LineEvent {
  const defaults = { id: `${line}-${sequence}`, entityId: "j1", timestamp: 1_000 + sequence, payload: {} };
  return lineEvent({ line, generation, sequence }, { ...defaults, ...event });
}

function shownOf(
  events: readonly LineEvent[],
  marks: Readonly<Record<string, "forked" | "evicted">> = {},
): ShownJob | null {
  const rows = projected(events);
  return shownJob(rows.jobRows("j1"), standing(rows, marks));
}

describe("conflicts", () => {
  const spec = { kind: "build", queue: "linux" };
  // Specification, Conflict Resolution: both controllers assign the same build.
  const submitted = told({ sequence: 1, eventType: "build:submitted", payload: { spec } });
  const byB = told({
    line: "b.1",
    sequence: 7,
    timestamp: 1_500,
    id: "e2",
    eventType: "build:assigned",
    payload: { agent: "wb" },
  });
  const byC = told({
    line: "c.1",
    sequence: 3,
    timestamp: 1_500,
    id: "e1",
    eventType: "build:assigned",
    payload: { agent: "wc" },
  });

  test("the specification's: two controllers assign one build; the first by (timestamp, id) wins, in any order", () => {
    for (const order of [
      [byB, byC],
      [byC, byB],
      [byC, byB, byC],
    ]) {
      expect(shownOf(order)).toMatchObject({ site: "c", state: "assigned", agent: "wc", claims: 2 });
    }
    const later = told({ line: "c.1", sequence: 3, timestamp: 1_501, id: "e1", eventType: "build:assigned" });
    expect(shownOf([later, byB])).toMatchObject({ site: "b" });
  });

  test("the site that submitted a job wins against those that only assign it, whatever their clocks say", () => {
    const early = told({ line: "b.1", sequence: 7, timestamp: 1, eventType: "build:completed" });
    expect(shownOf([early, byC, submitted])).toMatchObject({ site: "a", state: "pending", claims: 3, kind: "build" });
  });

  test("of two sites that took a job over the first wins; the higher ownership epoch goes before time", () => {
    const take = (line: string, timestamp: number, ownerEpoch: number): LineEvent =>
      told({ line, sequence: 1, timestamp, eventType: "build:submitted", payload: { spec, origin: { ownerEpoch } } });
    expect(shownOf([submitted, take("b.1", 1_800, 2), take("c.1", 1_700, 2)])).toMatchObject({ site: "c" });
    expect(shownOf([submitted, take("b.1", 1_800, 3), take("c.1", 1_700, 2)])).toMatchObject({ site: "b" });
  });

  test("a line that is forked or evicted wins against no other, and is shown where there is no other", () => {
    const second = told({
      line: "b.1",
      sequence: 1,
      timestamp: 5_000,
      eventType: "build:submitted",
      payload: { spec },
    });
    expect(shownOf([submitted, second])).toMatchObject({ site: "a" });
    expect(shownOf([submitted, second], { "a.1": "forked" })).toMatchObject({ site: "b", claims: 1 });
    expect(shownOf([submitted, second], { "a.1": "forked", "b.1": "evicted" })).toMatchObject({ site: "a" });
  });
});

describe("a line that is forked or evicted", () => {
  test("is not in the hash; its rows stay", () => {
    const [a, b] = [
      told({ sequence: 1, eventType: "build:submitted" }),
      told({ line: "b.1", sequence: 1, eventType: "build:submitted" }),
    ];
    const both = projected([a, b]);
    expect(both.hash(["b.1"])).toBe(projected([a]).hash());
    expect(both.hash(["b.1"])).not.toBe(both.hash());
    expect(both.texts()).toHaveLength(2);
  });
});

describe("generations", () => {
  const first = told({ sequence: 9, eventType: "build:completed" });
  const second = told({ generation: 2, sequence: 5, id: "new", eventType: "build:building" });

  test("a later generation is later, whatever its sequence", () => {
    for (const order of [
      [first, second],
      [second, first],
    ])
      expect(shownOf(order)).toMatchObject({ state: "building" });
  });

  test("of two lines of one site make one job; what was said after the place of the restore is lost", () => {
    const start = told({ sequence: 4, eventType: "build:submitted", payload: { spec: { kind: "build" } } });
    const recovered = told({
      line: "a.2",
      generation: 2,
      sequence: 5,
      entityId: "a",
      eventType: "controller:recovered",
      payload: { line: "a.1", through: 4 },
    });
    const assigned = told({
      line: "a.2",
      generation: 2,
      sequence: 6,
      eventType: "build:assigned",
      payload: { agent: "w" },
    });
    for (const order of [
      [start, first, recovered, assigned],
      [assigned, recovered, first, start],
    ]) {
      expect(shownOf(order)).toMatchObject({ state: "assigned", kind: "build", line: "a.2", isLost: false, claims: 1 });
    }
    expect(shownOf([start, first, recovered])).toMatchObject({ state: "completed", isLost: true });
    expect(shownOf([start, first])).toMatchObject({ state: "completed", isLost: false });
    // A job that the later generation forgot is forgotten.
    expect(
      shownOf([start, assigned, told({ line: "a.2", generation: 2, sequence: 7, eventType: "build:forgotten" })]),
    ).toBeNull();
  });

  test("what a later one has forgotten stays so while that one is marked: a mark makes no job appear", () => {
    const forgotten = told({ line: "a.2", generation: 2, sequence: 7, eventType: "build:forgotten" });
    for (const mark of ["forked", "evicted"] as const) {
      expect(shownOf([first, forgotten], { "a.2": mark })).toBeNull();
      expect(shownOf([first, forgotten], { "a.1": mark, "a.2": mark })).toBeNull();
    }
  });

  test("of another site are not ended by anybody else", () => {
    const lie = told({
      line: "b.1",
      generation: 2,
      sequence: 1,
      eventType: "controller:recovered",
      payload: { line: "a.1", through: 0 },
    });
    expect(projected([first, lie]).ends.size).toBe(0);
  });
});

describe("what other sites write", () => {
  const values = [
    null,
    true,
    0,
    -1,
    1e300,
    "",
    "x".repeat(100_000),
    `${"y".repeat(255)}\u{1f600}`,
    [],
    [[1]],
    {},
    { length: 1 },
  ];
  const names = [
    "spec",
    "job",
    "by",
    "origin",
    "agent",
    "attempt",
    "error",
    "platform",
    "capacity",
    "kinds",
    "labels",
    "name",
    "url",
    "urls",
    "line",
    "through",
  ];
  const types = [
    "build:submitted",
    "build:assigned",
    "build:failed",
    "build:retried",
    "build:unheard",
    "worker:registered",
    "controller:registered",
    "controller:recovered",
    "constructor:called",
  ] as const;

  test("never throws, and no row grows with it", () => {
    for (const eventType of types) {
      for (const value of values) {
        for (const name of names) {
          const nested = {
            kind: value,
            queue: value,
            labels: { a: value, ["z".repeat(5_000)]: "1" },
            message: value,
            spec: value,
            ownerEpoch: value,
          };
          const events = [{ [name]: value }, { [name]: nested }].map((payload, at) =>
            told({ sequence: at + 1, eventType, payload }),
          );
          const rows = projected(events);
          for (const { text } of rows.rows.values()) expect(text.length).toBeLessThan(8_000);
        }
      }
    }
  });

  test("changes nothing where its type is not known", () => {
    const known = told({ sequence: 1, eventType: "build:submitted" });
    const unknown = (["build:unheard", "worker:unheard", "controller:unheard", "new:kind"] as const).map(
      (eventType, at) => told({ sequence: at + 2, eventType }),
    );
    expect(projected([known, ...unknown]).texts()).toEqual(projected([known]).texts());
  });

  test("that a site delivered for a transaction is that site's business: its row is as any other's", () => {
    const delivery = { mark: "txn:t:0", place: Number.MAX_SAFE_INTEGER, operation: 0 };
    const spec = { kind: "build", queue: "default", priority: 0 };
    const rows = [
      { spec, by: "mover" },
      { spec, by: "mover", delivery },
    ].map((payload) => projected([told({ sequence: 1, eventType: "build:submitted", payload })]).texts());
    expect(rows[0]).toHaveLength(1);
    expect(rows[1]).toEqual(rows[0]);
  });

  test("of many labels, kinds and URLs keeps few", () => {
    const labels = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`l${at}`, "x".repeat(1_000)]));
    const urls = Array.from({ length: 1_000 }, () => "h".repeat(10_000));
    const payload = { spec: { labels }, labels, kinds: urls, urls };
    for (const eventType of types) {
      const rows = projected([told({ sequence: 1, eventType, payload })]);
      for (const { text } of rows.rows.values()) expect(text.length).toBeLessThan(80_000);
    }
  });
});

describe("controllers", () => {
  test("are shown by their own word, else by the latest of those who vouch for them", () => {
    const says = (line: string, timestamp: number, name: string): LineEvent =>
      told({ line, sequence: 1, timestamp, entityId: "a", eventType: "controller:registered", payload: { name } });
    const shown = (...events: LineEvent[]): string | null | undefined => {
      const rows = [...projected(events).rows.values()].flatMap(({ row }) =>
        row.kind === "controller" ? [row.row] : [],
      );
      return shownController(rows)?.registration?.name;
    };
    const [own, b, c] = [says("a.1", 1, "own"), says("b.1", 2, "of b"), says("c.1", 3, "of c")];
    expect(shown(b, c)).toBe("of c");
    expect(shown(c, b)).toBe("of c");
    expect(shown(b, own, c)).toBe("own");
  });
});
