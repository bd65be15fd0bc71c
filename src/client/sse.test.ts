import { describe, expect, it } from "vitest";
import { Point } from "./events.ts";
import { SseParser } from "./sse.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe("a stream of server-sent events", () => {
  it("is the same in whatever pieces it comes", () => {
    const text =
      'retry: 1000\nid: 4\n\nid: 5\nevent: build:log\ndata: {"a":"é€😀"}\n\n: heartbeat\n\ndata: 1\ndata: 2\n\n';
    const whole = new SseParser().push(bytes(text));
    expect(whole).toEqual([
      { id: "4", event: "message", data: null },
      { id: "5", event: "build:log", data: '{"a":"é€😀"}' },
      { id: undefined, event: "message", data: null },
      { id: undefined, event: "message", data: "1\n2" },
    ]);
    for (const size of [1, 2, 3, 7]) {
      const parser = new SseParser();
      const all = bytes(text);
      const frames = [];
      for (let at = 0; at < all.length; at += size) frames.push(...parser.push(all.subarray(at, at + size)));
      expect(frames).toEqual(whole);
    }
  });

  it("may come with other line ends, cut in the middle", () => {
    const parser = new SseParser();
    const text = "id: 1\r\ndata: x\r\n\r\nid: 2\r\n\r\n";
    const frames = text.split("").flatMap((letter) => parser.push(bytes(letter)));
    expect(frames.map(({ id, data }) => [id, data])).toEqual([
      ["1", "x"],
      ["2", null],
    ]);
  });

  it("is given up where a frame does not end", () => {
    const parser = new SseParser();
    const piece = bytes(`data: ${"x".repeat(1024 * 1024)}`);
    expect(() => {
      for (let count = 0; count < 5; count++) parser.push(piece);
    }).toThrow(/longer than/);
  });
});

/** An event of a history in which each one's hash is its number. */
function at(sequence: number, hash = String(sequence), previousHash = String(sequence - 1)) {
  return { sequence, previousHash, eventHash: hash };
}

describe("trap 67: where a reader of events is", () => {
  it("takes each event once, and refuses one behind a gap", () => {
    const point = new Point({ after: 3 }, false);
    expect([4, 4, 3, 5].map((sequence) => point.take(at(sequence)))).toEqual([true, false, false, true]);
    expect(() => point.take(at(7))).toThrow(/missing/);
    expect(point.last).toBe(5);
    expect(point.take(at(6))).toBe(true);
  });

  it("passes over what a filter leaves out, and never goes back", () => {
    const point = new Point({}, true);
    point.skipTo(10, null);
    expect(point.take(at(17))).toBe(true);
    point.skipTo(12, null);
    expect([point.last, point.take(at(17)), point.take(at(30))]).toEqual([17, false, true]);
  });
});
