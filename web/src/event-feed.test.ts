import { describe, expect, it } from "vitest";
import { fed, type Feed, type MeshEvent } from "./event-feed.ts";

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
const EMPTY: Feed = { events: [], after: null, error: null };
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
        Array.from({ length: 500 }, (_, at) => at + 1),
        500,
      ),
    );
    expect([many.events.length, many.events.at(-1)?.arrival]).toEqual([400, 500]);
  });
});
