import { expect, it } from "vitest";
import { encode, type FromGuard, Lines } from "./guard-protocol.ts";

const MESSAGES: readonly FromGuard[] = [
  { kind: "ready" },
  { kind: "seen" },
  { kind: "started", pid: 4711 },
  { kind: "failed", code: "ENOENT", message: 'spawn "a\nb" – ENOENT' },
  { kind: "done", why: "deadline", survivors: 0 },
];

it("messages survive a stream that is cut anywhere", () => {
  const stream = MESSAGES.map(encode).join("");
  for (let size = 1; size <= stream.length; size++) {
    const lines = new Lines<FromGuard>();
    const heard: FromGuard[] = [];
    for (let at = 0; at < stream.length; at += size) heard.push(...lines.take(stream.slice(at, at + size)));
    expect(heard).toEqual(MESSAGES);
  }
});

it("an unfinished line is no message, and an endless one is refused", () => {
  const lines = new Lines<FromGuard>();
  expect(lines.take('{"kind":"rea')).toEqual([]);
  expect(() => lines.take("x".repeat(8 * 1024 * 1024))).toThrow(/too long/);
});
