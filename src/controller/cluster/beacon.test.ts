import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Beacon } from "../../core/health/index.ts";
import { peerKey, type PeerKey } from "../../core/kit/ids.ts";
import { BEACON_BYTES_MAX, INTEGER_MAX } from "../../core/kit/limits.ts";
import { seededRandom } from "../../core/kit/random.ts";
import { ManualClock, n1, n2 } from "../../engine/test-engine.ts";
import { digest } from "../../engine/test-storage.ts";
import type { Peers } from "../../ports/peers/peers.ts";
import { BeaconLoop, beaconPoints, decodeBeacon, encodeBeacon as seal } from "./beacon.ts";
import { BEACON_POINTS_MAX } from "./limits.ts";

const integer = fc.integer({ min: 0, max: INTEGER_MAX });
const beacons: fc.Arbitrary<Beacon> = fc.record({
  role: fc.constantFrom("follower", "pre-candidate", "candidate", "leader"),
  term: integer,
  leader: fc.constantFrom(null, n1, peerKey("n".repeat(63), "0123456789abcdef")),
  established: fc.boolean(),
  handedTerm: integer,
  applied: integer,
  chain: fc.array(fc.record({ index: integer, hash: fc.nat(0xffffffff) }), { maxLength: BEACON_POINTS_MAX }),
  wallMs: integer,
});
const plain: Beacon = {
  role: "leader",
  term: 3,
  leader: n1,
  established: true,
  handedTerm: 2,
  applied: 9,
  chain: [{ index: 9, hash: 7 }],
  wallMs: 1,
};

const encodeBeacon = (beacon: Beacon): Uint8Array => seal(beacon, digest);
const read = (bytes: Uint8Array): Beacon | null => decodeBeacon(bytes, digest);
/** As somebody would send it who means what it says. */
function resealed(bytes: Uint8Array): Uint8Array {
  const copy = bytes.slice();
  new DataView(copy.buffer).setUint32(0, digest.crc32(copy.subarray(4)));
  return copy;
}

describe("the format of a beacon", () => {
  test("gives back what was written, within its bound", () => {
    fc.assert(
      fc.property(beacons, (beacon) => {
        const bytes = encodeBeacon(beacon);
        expect(bytes.length).toBeLessThan(BEACON_BYTES_MAX);
        expect(read(bytes)).toEqual(beacon);
      }),
    );
  });

  test("a later release may append fields; this one must not have any too many", () => {
    const bytes = encodeBeacon(plain);
    expect(read(resealed(new Uint8Array([...bytes, 1, 2])))).toBeNull();
    expect(read(resealed(new Uint8Array([...bytes.with(4, 2), 1, 2])))).toEqual(plain);
    expect(read(resealed(bytes.with(4, 0)))).toBeNull();
  });

  test("trap 31: garbage, wild numbers and oversized bytes are no beacon, and nothing is thrown", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void read(bytes)));
    fc.assert(fc.property(fc.uint8Array({ minLength: 4, maxLength: 200 }), (bytes) => void read(resealed(bytes))));
    const bytes = encodeBeacon(plain);
    for (let length = 0; length < bytes.length; length++) {
      expect(read(bytes.subarray(0, length))).toBeNull();
      if (length >= 4) expect(read(resealed(bytes.subarray(0, length)))).toBeNull();
    }
    expect(read(resealed(bytes.with(5, 4)))).toBeNull();
    expect(read(resealed(bytes.with(15, 0xff)))).toBeNull();
    expect(read(resealed(new Uint8Array(BEACON_BYTES_MAX + 1)))).toBeNull();
    const leaderAt = 4 + 3 + 32 + 4;
    expect(read(resealed(bytes.with(leaderAt, 0x20)))).toBeNull();
  });

  test("trap 31: a beacon of which any bit was flipped is none", () => {
    const bytes = encodeBeacon(plain);
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const at = bit >>> 3;
      expect(read(bytes.with(at, bytes[at]! ^ (1 << (bit & 7))))).toBeNull();
    }
  });
});

test("a node tells its head and the last checkpoints that it still knows", () => {
  const known = (from: number) => (index: number) => (index >= from ? index * 2 : null);
  expect(beaconPoints({ index: 0, hash: 0 }, known(0))).toEqual([]);
  expect(beaconPoints({ index: 10, hash: 5 }, known(0))).toEqual([{ index: 10, hash: 5 }]);
  expect(beaconPoints({ index: 2048, hash: 5 }, known(0)).map(({ index }) => index)).toEqual([2048, 1024]);
  expect(beaconPoints({ index: 9000, hash: 5 }, known(0)).map(({ index }) => index)).toEqual([9000, 8192, 7168, 6144]);
  expect(beaconPoints({ index: 9000, hash: 5 }, known(7168)).map(({ index }) => index)).toEqual([9000, 8192, 7168]);
});

describe("the loop", () => {
  function stage() {
    const clock = new ManualClock();
    const sent: Uint8Array[] = [];
    const heard: [PeerKey, Beacon][] = [];
    let hear: (from: PeerKey, bytes: Uint8Array) => void = () => undefined;
    const peers: Peers = {
      list: () => [],
      broadcast: (bytes) => void sent.push(bytes),
      onBeacon: (listener) => void (hear = listener),
    };
    const loop = new BeaconLoop({
      peers,
      clock,
      random: seededRandom("beacons"),
      digest,
      say: () => plain,
      heard: (from, beacon) => void heard.push([from, beacon]),
    });
    const pass = (forMs: number): void => {
      const untilMs = clock.nowMs + forMs;
      while (clock.nextMs <= untilMs) {
        clock.nowMs = clock.nextMs;
        clock.fireNext();
      }
      clock.nowMs = untilMs;
    };
    return { clock, sent, heard, loop, pass, hear: (bytes: Uint8Array) => hear(n2, bytes) };
  }

  test("speaks at once, soon again, and then about once a second, started once however often", () => {
    const { loop, sent, pass } = stage();
    loop.start();
    loop.start();
    expect(sent).toHaveLength(1);
    pass(10_000);
    expect(sent.length).toBeGreaterThanOrEqual(12);
    expect(sent.length).toBeLessThanOrEqual(16);
    expect(read(sent[3]!)).toEqual(plain);
  });

  test("hears what is a beacon, counts what is none, and nothing any more once it is stopped", () => {
    const { clock, loop, sent, heard, hear, pass } = stage();
    loop.start();
    hear(encodeBeacon(plain));
    hear(new Uint8Array([1, 2, 3]));
    expect(heard).toEqual([[n2, plain]]);
    expect(loop.counts).toEqual({ sent: 1, heard: 1, refused: 1 });
    loop.stop();
    loop.stop();
    hear(encodeBeacon(plain));
    pass(5_000);
    expect([heard.length, sent.length, clock.pending]).toEqual([1, 1, 0]);
  });
});
