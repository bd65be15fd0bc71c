// The judge of event readers sees what it is there for.

import { expect, test } from "vitest";
import { HistoryRewrittenError } from "../../src/client/index.ts";
import { problemsOf, type SeenEvent } from "./event-readers.ts";

const history = (branch: string, last: number, fork = 0): SeenEvent[] =>
  Array.from({ length: last }, (_, at) => ({
    sequence: at + 1,
    eventHash: `${at < fork ? "a" : branch}${at + 1}`,
    eventType: at % 2 === 0 ? "build:submitted" : "build:completed",
  }));

const OLD = history("a", 8);
const NEW = history("b", 12, 5);
const reader = { name: "r", types: undefined, rewrites: [], error: null };

test.each([
  ["all of the new history, after the named error", { ...reader, seen: NEW, rewrites: [{ seen: 8, common: 5 }] }, 0],
  ["the named error, and nothing since", { ...reader, seen: OLD, rewrites: [{ seen: 8, common: null }] }, 0],
  ["of one type, all", { ...reader, types: ["build:completed"], seen: NEW.filter((_, at) => at % 2 === 1) }, 0],
  [
    "went on from its sequence, without an error: 6 to 8 of the new history are missing",
    { ...reader, seen: [...OLD, ...NEW.slice(8)] },
    1,
  ],
  ["a gap", { ...reader, seen: NEW.filter((_, at) => at !== 6) }, 1],
  ["one twice", { ...reader, seen: [...NEW.slice(0, 7), ...NEW.slice(6)] }, 1],
  ["is not at the end", { ...reader, seen: NEW.slice(0, 11) }, 1],
  ["ended by another error", { ...reader, seen: NEW, error: new Error("x") }, 1],
  [
    "ended by the named error that it does not handle",
    { ...reader, seen: OLD, error: new HistoryRewrittenError(OLD[7]! as never, null) },
    1,
  ],
])("%s", (_what, one, problems) => {
  expect(problemsOf(one, NEW)).toHaveLength(problems);
});
