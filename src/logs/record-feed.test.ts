import { describe, expect, it } from "vitest";
import type { LogRecord } from "../ports/log.ts";
import { RecordFeed } from "./record-feed.ts";

function push(feed: RecordFeed, count: number, sizeBytes = 0): void {
  for (let at = 0; at < count; at++) {
    const record: LogRecord = { position: feed.position + 1, epoch: 1, data: new Uint8Array(sizeBytes) };
    feed.push(record);
    feed.tell(record);
  }
}

const positions = (records: readonly LogRecord[]): number[] => records.map(({ position }) => position);

describe("what is kept", () => {
  it("is bounded by count, and the oldest go first", () => {
    const feed = new RecordFeed({ recordsMax: 3 });
    push(feed, 10);
    expect(feed.first).toBe(8);
    expect(positions(feed.read(8, 10))).toEqual([8, 9, 10]);
    expect(() => feed.read(7, 1)).toThrow(expect.objectContaining({ code: "LOG_COMPACTED" }));
  });

  it("is bounded by bytes, but the newest is always kept", () => {
    const feed = new RecordFeed({ bytesMax: 1_000 });
    push(feed, 5, 400);
    expect(feed.first).toBe(4);
    push(feed, 1, 5_000);
    expect(positions(feed.read(6, 10))).toEqual([6]);
    push(feed, 1, 1);
    expect(feed.first).toBe(7);
  });

  it("stays right over many times its size", () => {
    const feed = new RecordFeed({ recordsMax: 100 });
    push(feed, 12_345);
    expect(feed.first).toBe(12_246);
    expect(positions(feed.read(12_246, 1_000))).toEqual(Array.from({ length: 100 }, (_, at) => 12_246 + at));
  });
});

describe("a jump", () => {
  it("tells those who are behind that records are gone, and leaves those who are not", () => {
    const feed = new RecordFeed();
    push(feed, 2);
    const told: string[] = [];
    const subscribe = (name: string, from: number): void => {
      feed.subscribe(
        from,
        ({ position }) => told.push(`${name} ${position}`),
        () => told.push(`${name} compacted`),
      );
    };
    subscribe("behind", 3);
    subscribe("exact", 11);
    subscribe("ahead", 12);
    feed.jump(10);
    expect(told).toEqual(["behind compacted"]);
    expect(feed.first).toBe(11);
    expect(feed.read(11, 5)).toEqual([]);
    push(feed, 2);
    expect(told).toEqual(["behind compacted", "exact 11", "exact 12", "ahead 12"]);
  });

  it("lets who was told subscribe again from inside, and miss nothing", () => {
    const feed = new RecordFeed();
    const told: number[] = [];
    const follow = (): void => {
      feed.subscribe(feed.position + 1, ({ position }) => told.push(position), follow);
    };
    follow();
    push(feed, 2);
    feed.jump(7);
    push(feed, 2);
    expect(told).toEqual([1, 2, 8, 9]);
  });
});
