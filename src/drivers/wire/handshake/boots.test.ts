import { describe, expect, it } from "vitest";
import { peerKey } from "../../../core/kit/ids.ts";
import { Boots } from "./boots.ts";

describe("the processes that spoke for a disk", () => {
  const disk = peerKey("n1", "a");

  it("one that was followed by another and dials again holds a copy", () => {
    const boots = new Boots();
    boots.accepted(disk, "first");
    expect(boots.isFormer(disk, "first", 0), "it merely dials again").toBe(false);
    boots.accepted(disk, "first");
    boots.accepted(disk, "second");
    expect(boots.isFormer(disk, "second", 0), "a restart is no copy").toBe(false);
    expect(boots.cloned(0)).toEqual([]);
    expect(boots.isFormer(disk, "first", 1_000)).toBe(true);
    expect(boots.isFormer(peerKey("n1", "b"), "first", 0), "of another disk").toBe(false);
    expect(boots.cloned(2_000)).toEqual(["n1"]);
    expect(boots.cloned(3_600_000 + 1_000)).toEqual([]);
  });

  it("a node that was restarted a thousand times has no copy, and the last process before this one would be one", () => {
    const boots = new Boots();
    for (let at = 0; at < 2_000; at++) {
      expect(boots.isFormer(disk, `mark-${at}`, 0)).toBe(false);
      boots.accepted(disk, `mark-${at}`);
    }
    expect(boots.isFormer(disk, "mark-1998", 0)).toBe(true);
  });
});
