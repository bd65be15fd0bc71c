import { describe, expect, it } from "vitest";
import { peerKey, type PeerKey } from "../kit/ids.ts";
import { CLOCK_HEARD_MS_MAX, CLOCK_MS_MAX, CLOCK_PROBATION_MS } from "../kit/limits.ts";
import { Clocks, type ClockView } from "./clocks.ts";

const [A, B, C] = [peerKey("n1", "a1"), peerKey("n2", "a1"), peerKey("n3", "a1")];
const DAY_MS = 86_400_000;
const TRUE_MS = 20_000 * DAY_MS;

/** n1 among voters; what each clock is off by, and who is heard. */
class Desk {
  readonly clocks = new Clocks(A);
  readonly voters: readonly PeerKey[];
  readonly offMs: Record<string, number> = {};
  nowMs = 5_000;

  constructor(...voters: PeerKey[]) {
    this.voters = voters;
  }

  get at(): { nowMs: number; wallMs: number } {
    return { nowMs: this.nowMs, wallMs: this.trueMs + (this.offMs[A] ?? 0) };
  }

  get trueMs(): number {
    return TRUE_MS + this.nowMs;
  }

  /** A second passes: these are heard, and it is looked at. */
  second(...heard: PeerKey[]): ClockView {
    this.nowMs += 1_000;
    for (const peer of heard) this.clocks.heard(this.at, peer, this.trueMs + (this.offMs[peer] ?? 0), this.voters);
    return this.clocks.tick(this.at, this.voters);
  }

  /** How far what is believed is off; null: nothing is. */
  get believedOffMs(): number | null {
    const believedMs = this.clocks.believedMs(this.at);
    return believedMs === null ? null : believedMs - this.trueMs;
  }
}

describe("the clocks of three voters", () => {
  it("are believed while a majority agrees, as this node's own shows it", () => {
    const desk = new Desk(A, B, C);
    desk.offMs[A] = 700;
    expect(desk.second()).toEqual({ state: "unknown", skewMs: null });
    expect(desk.believedOffMs).toBeNull();
    expect(desk.second(B)).toMatchObject({ state: "ok" });
    expect(desk.believedOffMs).toBe(700);
  });

  it("outvote this node's, which is a day ahead: theirs is believed at once, and a few seconds later it is said", () => {
    const desk = new Desk(A, B, C);
    desk.second(B, C);
    desk.offMs[A] = DAY_MS;
    expect(desk.believedOffMs).toBe(0);
    const states = [desk.second(B, C), desk.second(B, C), desk.second(B, C)].map(({ state }) => state);
    expect(states).toEqual(["ok", "ok", "skewed"]);
    expect([desk.believedOffMs, desk.clocks.view.skewMs]).toEqual([0, DAY_MS]);
    desk.offMs[A] = 40_000;
    expect(desk.second(B, C).state).toBe("skewed");
    desk.offMs[A] = 20_000;
    expect(desk.second(B, C).state).toBe("ok");
  });

  it("of which one other is months off are no worse for it", () => {
    const desk = new Desk(A, B, C);
    desk.offMs[C] = -90 * DAY_MS;
    for (let seconds = 0; seconds < 5; seconds++) expect(desk.second(B, C).state).toBe("ok");
    expect(desk.believedOffMs).toBe(0);
  });

  it("that all differ are not believed, nor is one of two; nobody is to blame then", () => {
    const desk = new Desk(A, B, C);
    desk.offMs[A] = DAY_MS;
    desk.offMs[C] = -DAY_MS;
    for (let seconds = 0; seconds < 3; seconds++) desk.second(B, C);
    expect([desk.clocks.view.state, desk.believedOffMs]).toEqual(["disagreeing", null]);
    for (let seconds = 0; seconds < 12; seconds++) desk.second(B);
    expect([desk.clocks.view.state, desk.believedOffMs]).toEqual(["disagreeing", null]);
    for (let seconds = 0; seconds < 12; seconds++) desk.second();
    expect(desk.clocks.view.state).toBe("unknown");
  });

  it("that show no possible time are not heard: two that agree on the year 2248 outvote nobody", () => {
    const desk = new Desk(A, B, C);
    desk.second(B, C);
    for (const peer of [B, C]) desk.offMs[peer] = CLOCK_MS_MAX;
    for (let seconds = 0; seconds < 3; seconds++) desk.second(B, C);
    expect([desk.clocks.view.state, desk.believedOffMs]).toEqual(["unknown", null]);
    const own = new Desk(A, B, C);
    own.offMs[A] = CLOCK_MS_MAX;
    own.second(B, C);
    expect(own.believedOffMs).toBe(0);
  });

  it("count for a few seconds after they were heard last", () => {
    const desk = new Desk(A, B, C);
    desk.second(B);
    desk.nowMs += CLOCK_HEARD_MS_MAX - 1;
    expect(desk.believedOffMs).toBe(0);
    desk.nowMs += 2;
    expect(desk.believedOffMs).toBeNull();
  });

  it("of nodes that are no voters do not count", () => {
    const desk = new Desk(B, C);
    expect(desk.second(B).state).toBe("unknown");
    desk.offMs[A] = -DAY_MS;
    for (let seconds = 0; seconds < 3; seconds++) desk.second(B, C);
    expect([desk.clocks.view.state, desk.believedOffMs]).toEqual(["skewed", 0]);
  });
});

describe("the only clock there is", () => {
  it("is believed from the start", () => {
    const desk = new Desk(A);
    desk.offMs[A] = 30 * DAY_MS;
    expect(desk.second().state).toBe("ok");
    expect(desk.believedOffMs).toBe(30 * DAY_MS);
  });

  it("that jumps while the node runs is not believed until it has gone on evenly for a while", () => {
    const desk = new Desk(A);
    desk.second();
    desk.offMs[A] = 25 * 3_600_000;
    expect(desk.believedOffMs).toBe(0);
    for (let seconds = 0; seconds < 3; seconds++) desk.second();
    expect([desk.clocks.view.state, desk.believedOffMs]).toEqual(["jumped", null]);
    desk.offMs[A] = 0;
    for (let passedMs = 0; passedMs < CLOCK_PROBATION_MS; passedMs += 1_000) {
      desk.second();
      expect(desk.believedOffMs).toBeNull();
    }
    desk.second();
    expect([desk.clocks.view.state, desk.believedOffMs]).toEqual(["ok", 0]);
  });
});
