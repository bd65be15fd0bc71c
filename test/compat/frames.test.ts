// What each release has said and written, read by the code of today: it means the same, and is written the same.

import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { allFrames, problemOf, type StoredFrame } from "./frames.ts";

const here = new URL("./", import.meta.url);
const releases = readdirSync(here, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

function storedBy(release: string): StoredFrame[] {
  const lines = readFileSync(new URL(`${release}/frames.jsonl`, here), "utf8")
    .trimEnd()
    .split("\n");
  return lines.map((line) => JSON.parse(line) as StoredFrame);
}

it("has what the first release wrote", () => expect(releases).toContain("0.1.0"));

describe.each(releases)("frames of %s", (release) => {
  const stored = storedBy(release);

  it("are all read, mean what they meant, and are written as they were", () => {
    expect(stored.length).toBeGreaterThan(30);
    expect(stored.map(problemOf).filter((problem) => problem !== null)).toEqual([]);
  });

  it("with one digit changed anywhere are not the same any more", () => {
    for (const frame of stored) {
      for (let at = 0; at < frame.hex.length; at += 7) {
        const digit = ((Number.parseInt(frame.hex[at]!, 16) + 1) % 16).toString(16);
        const hex = `${frame.hex.slice(0, at)}${digit}${frame.hex.slice(at + 1)}`;
        expect(problemOf({ ...frame, hex }), `${frame.name} at ${at}`).not.toBeNull();
      }
    }
  });
});

it("every kind that is written today is among those of the newest release", () => {
  const newest = releases.toSorted((one, other) => one.localeCompare(other, "en", { numeric: true })).at(-1)!;
  const names = new Set(storedBy(newest).map(({ name }) => name));
  expect(allFrames().filter(({ name }) => !names.has(name))).toEqual([]);
});
