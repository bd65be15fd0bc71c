import { describe, expect, it } from "vitest";
import {
  beginMs,
  earlierPlace,
  EMPTY_FEED as EMPTY,
  EVENTS_PAGE,
  fed,
  fedBack,
  type Feed,
  laneHint,
  type MeshEvent,
} from "./event-feed.ts";

const event = (arrival: number): MeshEvent => ({
  arrival,
  site: "a",
  line: "a.1",
  line_sequence: arrival,
  timestamp: arrival,
  event_type: "build:submitted",
  entity_id: "j",
  entity_type: "build",
  payload: {},
  event_hash: "",
});
const answer = (arrivals: readonly number[], through: number, next: number | null = null) => ({
  events: arrivals.map(event),
  next,
  through,
});
const shown = ({ events, after }: Feed) => [events.map(({ arrival }) => arrival), after];

describe("the feed of events", () => {
  it("begins with the newest and goes on after what was looked at, not after what fits", () => {
    const begun = fed(EMPTY, answer([3, 7], 9));
    expect(shown(begun)).toEqual([[3, 7], 9]);
    expect(shown(fed(begun, answer([11], 12)))).toEqual([[3, 7, 11], 12]);
    expect(shown(fed(begun, answer([], 15)))).toEqual([[3, 7], 15]);
  });

  it("goes on from the end of a full page", () => {
    const begun = fed(EMPTY, answer([1], 1));
    expect(shown(fed(begun, answer([2, 3], 90, 3)))).toEqual([[1, 2, 3], 3]);
  });

  it("shows nothing twice, and nothing of a node that has not got so far", () => {
    const begun = fed(EMPTY, answer([1, 2], 2));
    expect(shown(fed(begun, answer([2, 3], 3)))).toEqual([[1, 2, 3], 3]);
    expect(fed(begun, answer([1], 1))).toBe(begun);
  });

  it("keeps the newest", () => {
    const many = fed(
      EMPTY,
      answer(
        Array.from({ length: 1_000 }, (_, at) => at + 1),
        1_000,
      ),
    );
    expect([many.events.length, many.events.at(-1)?.arrival, beginMs(many)]).toEqual([800, 1_000, 201]);
  });
});

describe("what came before the first page", () => {
  const range = (from: number, through: number): readonly number[] =>
    Array.from({ length: through - from + 1 }, (_, at) => from + at);
  const newest = fed(EMPTY, answer(range(301, 300 + EVENTS_PAGE), 300 + EVENTS_PAGE));

  it("is loaded page by page, until the window is full or there is no more", () => {
    expect(earlierPlace(newest, 400)).toBe(100);
    const more = fedBack(newest, 100, answer(range(101, 300), 500));
    expect([more.events.length, beginMs(more), more.after]).toEqual([400, 101, 500]);
    expect(earlierPlace(more, 400)).toBe(0);
    expect(earlierPlace(more, 400_000), "it is older than the window").toBe(null);
    const all = fedBack(more, 0, answer(range(1, 100), 500));
    expect([all.events.map(({ arrival }) => arrival), beginMs(all)]).toEqual([range(1, 500), null]);
    expect(earlierPlace(all, 400)).toBe(null);
  });

  it("is no more than is kept, and nothing is shown twice", () => {
    let feed = fed(EMPTY, answer(range(9_801, 10_000), 10_000));
    let pages = 0;
    for (let place = earlierPlace(feed, 0); place !== null && pages < 100; place = earlierPlace(feed, 0)) {
      feed = fedBack(feed, place, answer(range(place + 1, place + EVENTS_PAGE + 5), 10_000));
      pages++;
    }
    expect([pages, feed.events.map(({ arrival }) => arrival)]).toEqual([3, range(9_201, 10_000)]);
  });

  it("is none where the first page was not full, or nothing was asked for yet", () => {
    expect([earlierPlace(EMPTY, 400), earlierPlace(fed(EMPTY, answer([3, 7], 9)), 400)]).toEqual([null, null]);
    expect(beginMs(fed(EMPTY, answer([3, 7], 9)))).toBe(null);
  });

  it("a page that brings nothing is not asked for again", () => {
    expect(earlierPlace(fedBack(newest, 100, answer([], 500)), 400)).toBe(0);
  });

  it("a lane without dots does not say that there is nothing, where its events are older than the first that is loaded", () => {
    const known = { events: 5, lastEventAtMs: 1_000 };
    expect(laneHint(known, newest, 61_000)).toBe("its last event, 1 min ago, is not among those that are loaded");
    expect(laneHint({ events: 5, lastEventAtMs: null }, newest, 61_000)).toBe(
      "none of its events is among those that are loaded",
    );
    const nothing = "nothing of it is shown here";
    expect(laneHint({ events: 0, lastEventAtMs: null }, newest, 61_000)).toBe(nothing);
    expect(laneHint(undefined, newest, 61_000)).toBe(nothing);
    expect(laneHint(known, fed(EMPTY, answer([3], 9)), 61_000)).toBe(nothing);
  });
});
