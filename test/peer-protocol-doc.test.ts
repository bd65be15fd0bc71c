// docs/reference/peer-protocol.md lists every frame with its number and its bound, every version, and the limits of queries.

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { encodeSegmentQuery } from "../src/core/archive/index.ts";
import { BULK_PHASE } from "../src/drivers/wire/bulk-receiver.ts";
import { FRAME, type FrameType } from "../src/drivers/wire/frame.ts";
import { PROTOCOL_MAX, PROTOCOL_MIN } from "../src/drivers/wire/handshake/hello.ts";
import * as limits from "../src/drivers/wire/limits.ts";

const markdown = readFileSync("docs/reference/peer-protocol.md", "utf8");

const BYTES_MAX: Readonly<Record<FrameType, number>> = {
  [FRAME.hello]: limits.HANDSHAKE_BYTES_MAX,
  [FRAME.ack]: limits.HANDSHAKE_BYTES_MAX,
  [FRAME.refuse]: limits.HANDSHAKE_BYTES_MAX,
  [FRAME.message]: limits.MESSAGE_FRAME_BYTES_MAX,
  [FRAME.beacon]: limits.BEACON_FRAME_BYTES_MAX,
  [FRAME.ping]: 0,
  [FRAME.pong]: 0,
  [FRAME.bulkBegin]: BULK_PHASE[FRAME.bulkBegin]!,
  [FRAME.bulkData]: BULK_PHASE[FRAME.bulkData]!,
  [FRAME.bulkEnd]: BULK_PHASE[FRAME.bulkEnd]!,
  [FRAME.query]: limits.QUERY_FRAME_BYTES_MAX,
  [FRAME.answer]: limits.ANSWER_FRAME_BYTES_MAX,
};

function frames(text: string): (readonly [string, number, number])[] {
  return [...text.matchAll(/^\| (\d+) \| (\w+) \| [^|]+ \| [^|]+ \| (\d+) \|$/gm)].map(
    ([, type, name, bytes]) => [name!, Number(type), Number(bytes)] as const,
  );
}

function versions(text: string): number[] {
  return [...text.matchAll(/^\| (\d+) \| [^|]+ \|$/gm)].map(([, version]) => Number(version));
}

it("lists every frame with its number and its bound, and no other", () => {
  const actual = Object.entries(FRAME).map(([name, type]) => [name, type, BYTES_MAX[type]]);
  expect(frames(markdown)).toEqual(actual);
});

it("lists the versions that this release speaks", () => {
  const all = Array.from({ length: PROTOCOL_MAX - PROTOCOL_MIN + 1 }, (_, at) => PROTOCOL_MIN + at);
  expect(versions(markdown)).toEqual(all);
});

it("says how many queries may be under way, and for how long", () => {
  expect(markdown).toContain(`At most ${limits.QUERIES_PENDING_MAX} queries`);
  expect(limits.ANSWERING_MAX).toBe(limits.QUERIES_PENDING_MAX);
  expect(markdown).toContain(`given up after ${limits.QUERY_MS_MAX / 1_000} seconds`);
  expect(markdown).toContain(`above ${limits.BULK_ABOVE_BYTES / 2 ** 20} MiB`);
});

it("shows the query for a piece of a segment as it is written", () => {
  const query = encodeSegmentQuery({ first: 2, offsetBytes: 3, bytesMax: 4 });
  expect([...query]).toEqual([1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4]);
  expect(markdown).toContain("u8 1 | first sequence u64 | offset in the file u32 | most bytes u32");
});

it("sees a missing frame, another number and another bound", () => {
  const row = "| 11 | query |";
  expect(markdown).toContain(row);
  const names = (text: string): string[] => frames(text).map(([name]) => name);
  expect(names(markdown.replace(row, "| was here |"))).not.toContain("query");
  expect(frames(markdown.replace(row, "| 13 | query |"))).not.toEqual(frames(markdown));
  expect(frames(markdown.replace("| 260 |", "| 261 |"))).not.toEqual(frames(markdown));
});
