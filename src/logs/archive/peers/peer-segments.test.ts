import { describe, expect, test } from "vitest";
import { decodeHistoryQuery, encodeSegmentQuery, encodeStartQuery } from "../../../core/archive/index.ts";
import { peerKey, type PeerKey } from "../../../core/kit/ids.ts";
import { ANSWER_BYTES_MAX, INTEGER_MAX, QUERY_BYTES_MAX } from "../../../core/kit/limits.ts";
import { seededRandom } from "../../../core/kit/random.ts";
import { TestDisk } from "../../../engine/test-disk.ts";
import { ManualClock } from "../../../loops/test-clock.ts";
import type { Answering, PeerQueries } from "../../../ports/peers/queries.ts";
import { expectHistory, filled, open, sealedEvents } from "../../../../test/archive/test-archive.ts";
import { exchangeSegments, segmentAnswers, type Archive, type SegmentFetcher } from "../index.ts";

const events = sealedEvents(23);
const N1 = peerKey("n1", "1");

/** Nodes that ask each other without a network. */
class TestQueries implements PeerQueries {
  readonly others = new Map<PeerKey, TestQueries>();
  answer: Answering | null = null;
  #listener: (peer: PeerKey) => void = () => undefined;
  readonly #self: PeerKey;

  constructor(nodeId: string) {
    this.#self = peerKey(nodeId, "1");
  }

  connect(other: TestQueries): void {
    this.others.set(other.#self, other);
    this.#listener(other.#self);
  }

  askable(): readonly PeerKey[] {
    return [...this.others.keys()];
  }

  async ask(peer: PeerKey, query: Uint8Array): Promise<Uint8Array | null> {
    return (await this.others.get(peer)?.answer?.(this.#self, query)) ?? null;
  }

  onQuery(answer: Answering): void {
    this.answer = answer;
  }

  onAskable(listener: (peer: PeerKey) => void): void {
    this.#listener = listener;
  }
}

function exchange(archive: Archive, queries: TestQueries): SegmentFetcher {
  const logger = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const members = (): PeerKey[] => [...queries.others.keys()];
  return exchangeSegments({ archive, queries, members, clock: new ManualClock(), random: seededRandom(1), logger });
}

describe("a question for a piece of a segment", () => {
  test("is read as it was written, is small, and whatever else comes is none", () => {
    const query = { first: INTEGER_MAX, offsetBytes: 2 ** 32 - 1, bytesMax: ANSWER_BYTES_MAX };
    const bytes = encodeSegmentQuery(query);
    expect(decodeHistoryQuery(bytes)).toEqual({ kind: "segment", ...query });
    expect(decodeHistoryQuery(encodeStartQuery())).toEqual({ kind: "start" });
    expect(bytes.length).toBeLessThanOrEqual(QUERY_BYTES_MAX);
    for (let size = 0; size < bytes.length; size++) expect(decodeHistoryQuery(bytes.subarray(0, size))).toBeNull();
    expect(decodeHistoryQuery(Uint8Array.from([4, ...bytes.subarray(1)]))).toBeNull();
    expect(decodeHistoryQuery(Uint8Array.from(bytes, () => 255))).toBeNull();
  });
});

describe("answers", () => {
  test("are pieces of sealed segments that are whole here, within the bound, and nothing for anything else", async () => {
    const { archive } = await filled(new TestDisk(), events);
    const answer = segmentAnswers(archive);
    const ask = (first: number, offsetBytes: number, bytesMax: number): Promise<Uint8Array | null> =>
      answer(N1, encodeSegmentQuery({ first, offsetBytes, bytesMax }));
    const [entry] = archive.manifest().segments;
    const whole = (await ask(1, 0, 2 ** 32 - 1))!;
    expect(whole.length).toBe(entry!.sizeBytes);
    expect(await ask(1, 10, 7)).toEqual(whole.subarray(10, 17));
    // In the middle of a segment, open, beyond the head, after the file's end, nothing at all.
    expect(await Promise.all([ask(2, 0, 9), ask(21, 0, 9), ask(99, 0, 9), ask(0, 0, 9)])).toEqual([
      null,
      null,
      null,
      null,
    ]);
    expect(await Promise.all([ask(1, whole.length, 9), ask(1, 2 ** 32 - 1, 9), ask(1, 0, 0)])).toEqual([
      null,
      null,
      null,
    ]);
    expect(await answer(N1, Uint8Array.of(1, 2, 3))).toBeNull();
    expect(await answer(N1, new Uint8Array(0))).toBeNull();
  });

  test("are not given for what is missing here, nor more at a time than the bound", async () => {
    const source = await filled(new TestDisk(), events);
    const { archive } = await open(new TestDisk());
    await archive.restore(await source.archive.capture());
    expect(await segmentAnswers(archive)(N1, encodeSegmentQuery({ first: 1, offsetBytes: 0, bytesMax: 9 }))).toBeNull();
    const asked: number[] = [];
    const serve: Archive["serve"] = async (_first, _offset, bytesMax) => {
      asked.push(bytesMax);
      return null;
    };
    const manifest = (): ReturnType<Archive["manifest"]> => archive.manifest();
    await segmentAnswers({ serve, manifest, missing: () => [], lastSequence: 0 })(
      N1,
      encodeSegmentQuery({ first: 1, offsetBytes: 0, bytesMax: 2 ** 31 }),
    );
    expect(asked).toEqual([ANSWER_BYTES_MAX]);
  });
});

describe("the exchange", () => {
  test("a node that lacks everything gets it as soon as somebody connects, from those who have it, and passes it on", async () => {
    const [full, empty, later] = [new TestQueries("n1"), new TestQueries("n2"), new TestQueries("n3")];
    const source = await filled(new TestDisk(), events);
    const [joining, last] = [await open(new TestDisk()), await open(new TestDisk())];
    const fetchers = [
      exchange(source.archive, full),
      exchange(joining.archive, empty),
      exchange(last.archive, later),
    ] as const;
    const capture = await source.archive.capture();
    await joining.archive.restore(capture);
    await last.archive.restore(capture);
    // Nobody has anything for the other yet.
    empty.connect(later);
    empty.connect(full);
    await expect.poll(() => joining.archive.isComplete).toBe(true);
    // The one that had it first is gone: any node that has it will do.
    later.connect(empty);
    await expect.poll(() => last.archive.isComplete).toBe(true);
    await expectHistory(joining.archive, events);
    await expectHistory(last.archive, events);
    expect(fetchers.map(({ counts }) => counts.installed)).toEqual([0, 4, 4]);
    for (const fetcher of fetchers) await fetcher.stop();
  });

  test("a node that joins with a list from before the others let events go learns where their history starts", async () => {
    const [keeping, joining] = [new TestQueries("n1"), new TestQueries("n2")];
    const source = await filled(new TestDisk(), events);
    const node = await open(new TestDisk());
    await node.archive.restore(await source.archive.capture());
    await source.archive.retain(await source.archive.pointAt(15));
    const fetchers = [exchange(source.archive, keeping), exchange(node.archive, joining)] as const;
    joining.connect(keeping);
    await expect.poll(() => node.archive.isComplete).toBe(true);
    expect(node.archive.stats().startSequence).toBe(15);
    await expectHistory(node.archive, events, 16);
    await Promise.all(fetchers.map((fetcher) => fetcher.stop()));
  });
});
