import { describe, expect, it } from "vitest";
import { MARKS_MAX } from "../limits.ts";
import { Lags, NO_LAGS } from "./lags.ts";

const lane = (link: string, size: number) => ({ link, line: "a", size, isAsked: true, isWanted: true });

class Stage {
  readonly lags = new Lags();
  nowMs = 0;
  ours = new Map<string, number>();
  /** By link and line. */
  lanes: { link: string; line: string; size: number; isAsked: boolean; isWanted: boolean }[] = [];
  readonly sizeOf = (line: string): number => this.ours.get(line) ?? 0;

  at(nowMs: number): void {
    this.nowMs = nowMs;
    this.lags.review(nowMs, this.lanes, this.sizeOf);
  }

  link(link: string) {
    const [lag, missing] = this.lags.ofLinks(this.nowMs, this.lanes, this.sizeOf).get(link) ?? NO_LAGS;
    return { lag, missing };
  }
}

describe("a lag", () => {
  it("is counted in events, and from when there was more than the other side has", () => {
    const stage = new Stage();
    stage.ours.set("a", 10);
    stage.lanes = [lane("l1", 10)];
    stage.at(1_000);
    expect(stage.link("l1")).toEqual({ lag: { events: 0, ms: 0 }, missing: { events: 0, ms: 0 } });
    stage.ours.set("a", 14);
    stage.at(2_000);
    stage.ours.set("a", 20);
    stage.at(5_000);
    expect(stage.link("l1").lag).toEqual({ events: 10, ms: 3_000 });
    // The first four have arrived: the rest is younger.
    stage.lanes[0]!.size = 14;
    stage.at(6_000);
    expect(stage.link("l1").lag).toEqual({ events: 6, ms: 1_000 });
    stage.lanes[0]!.size = 20;
    stage.at(7_000);
    expect(stage.link("l1").lag).toEqual({ events: 0, ms: 0 });
  });

  it("of what is lacking here is that of the line, whichever link has most of it", () => {
    const stage = new Stage();
    stage.lanes = [lane("l1", 3), lane("l2", 8)];
    stage.at(1_000);
    stage.at(4_000);
    expect([...stage.lags.lines(stage.nowMs, stage.lanes, stage.sizeOf)]).toEqual([["a", { events: 8, ms: 3_000 }]]);
    expect(stage.link("l1").missing).toEqual({ events: 3, ms: 3_000 });
    stage.ours.set("a", 8);
    stage.at(5_000);
    expect([...stage.lags.lines(stage.nowMs, stage.lanes, stage.sizeOf)]).toEqual([]);
  });

  it("under steady traffic stays as old as what is under way", () => {
    const stage = new Stage();
    stage.lanes = [lane("l1", 0)];
    for (let second = 1; second <= 500; second++) {
      stage.ours.set("a", second * 100);
      stage.lanes[0]!.size = (second - 1) * 100;
      stage.at(second * 1_000);
    }
    expect(stage.link("l1").lag).toEqual({ events: 100, ms: 0 });
  });

  it("keeps the age of the oldest however long the line grows on", () => {
    const stage = new Stage();
    stage.lanes = [lane("l1", 0)];
    for (let second = 1; second <= 3 * MARKS_MAX; second++) {
      stage.ours.set("a", second);
      stage.at(second * 1_000);
    }
    expect(stage.link("l1").lag).toEqual({ events: 3 * MARKS_MAX, ms: (3 * MARKS_MAX - 1) * 1_000 });
  });

  it("counts no time where the other side did not ask for the line here, and nothing of lines that this site does not take", () => {
    const stage = new Stage();
    stage.ours.set("a", 5);
    stage.lanes = [
      { ...lane("l1", 3), isAsked: false },
      { ...lane("l2", 9), isWanted: false },
    ];
    stage.at(1_000);
    stage.at(9_000);
    expect(stage.link("l1").lag).toEqual({ events: 2, ms: 0 });
    expect(stage.link("l2").missing).toEqual({ events: 0, ms: 0 });
    expect(stage.lags.lines(stage.nowMs, stage.lanes, stage.sizeOf).size).toBe(0);
  });
});
