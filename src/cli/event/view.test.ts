import { describe, expect, it } from "vitest";
import type { EventView } from "../../client/index.ts";
import { eventLine, isWanted } from "./view.ts";

const EVENT: EventView = {
  id: "e1",
  sequence: 12,
  timestamp: 1_000.004,
  eventType: "build:submitted",
  entityId: "j1",
  entityType: "build",
  payload: { fooBar: "a\u009Bb" },
  sourceControllerId: "n1",
  previousHash: null,
  eventHash: "ab",
  leaderEpoch: 3,
};

describe("an event", () => {
  it("is one line for people, whatever is in its payload", () => {
    expect(eventLine("table", EVENT)).toBe(
      '     12  1970-01-01T00:00:01.000Z  build:submitted    j1  {"fooBar":"a?b"}\n',
    );
    const request = { bodyHash: "ab", caller: "ci" };
    const plain = "     12  1970-01-01T00:00:01.000Z  build:submitted    j1";
    expect(eventLine("table", { ...EVENT, payload: { request } })).toBe(`${plain}\n`);
    expect(eventLine("table", { ...EVENT, payload: { request, by: "x" } })).toBe(`${plain}  {"by":"x"}\n`);
    const long = eventLine("table", { ...EVENT, payload: { text: "é\n".repeat(1_000) } });
    expect(long.split("\n")).toHaveLength(2);
    expect(long).toMatch(/  \{"text":.*…\n$/);
    expect(long.slice(long.indexOf("{")).length).toBe(101);
    // Half a pair of surrogates is no letter.
    expect(eventLine("table", { ...EVENT, payload: { text: "😀".repeat(1_000) } }).isWellFormed()).toBe(true);
  });

  it("is whole for programs: the sealed fields, the payload's names as they are", () => {
    const object = {
      at: "1970-01-01T00:00:01.000Z",
      id: "e1",
      sequence: 12,
      timestamp: 1_000.004,
      event_type: "build:submitted",
      entity_id: "j1",
      entity_type: "build",
      payload: { fooBar: "a\u009Bb" },
      source_controller_id: "n1",
      previous_hash: null,
      event_hash: "ab",
      leader_epoch: 3,
    };
    expect(JSON.parse(eventLine("jsonl", EVENT))).toEqual(object);
    expect(eventLine("json", EVENT)).toBe(eventLine("jsonl", EVENT));
  });

  it("is wanted where all that was asked for holds, as the servers' filter has it", () => {
    const all = { types: undefined, entityId: undefined, entityType: undefined };
    expect(isWanted(all, EVENT)).toBe(true);
    expect(isWanted({ ...all, types: ["key:*", "build:*"] }, EVENT)).toBe(true);
    expect(isWanted({ ...all, types: ["build:submitted"], entityId: "j1", entityType: "build" }, EVENT)).toBe(true);
    expect(isWanted({ ...all, types: ["build:failed"] }, EVENT)).toBe(false);
    expect(isWanted({ ...all, types: ["build:*"], entityId: "j2" }, EVENT)).toBe(false);
    expect(isWanted({ ...all, entityType: "key" }, EVENT)).toBe(false);
  });
});
