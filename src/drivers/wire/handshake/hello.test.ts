import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  commonProtocol,
  decodeAck,
  decodeHello,
  decodeRefuse,
  encodeAck,
  encodeHello,
  encodeRefuse,
  type Hello,
} from "./hello.ts";
import { HANDSHAKE_BYTES_MAX, PEERS_TOLD_MAX } from "../limits.ts";

const HELLO: Hello = {
  protocolMin: 1,
  protocolMax: 3,
  purpose: "peer",
  clusterId: "c-1",
  nodeId: "n1",
  incarnation: "3f9a",
  address: "10.0.0.1:7400",
  apiUrl: "https://n1.example:8443",
  leaseEnabled: true,
};

describe("the handshake", () => {
  it("reads what was written, and ignores what a later version adds", () => {
    expect(decodeHello(encodeHello(HELLO))).toEqual({ ok: true, value: HELLO });
    const marked = { ...HELLO, mark: "m".repeat(32) };
    const longer = Uint8Array.of(...encodeHello(marked), 1, 2, 3);
    expect(decodeHello(longer)).toEqual({ ok: true, value: marked });
    const { protocolMin: _min, protocolMax: _max, purpose: _purpose, ...introduction } = HELLO;
    const ack = { protocol: 1, ...introduction, apiUrl: null, peers: [["n2", "[::1]:7400"]] as const };
    expect(decodeAck(encodeAck(ack))).toEqual({ ok: true, value: ack });
    expect(decodeAck(Uint8Array.of(...encodeAck(ack), 1, 2, 3))).toEqual({ ok: true, value: ack });
  });

  it("stays below its bound with the longest of everything, and drops peers rather than passing it", () => {
    const long = {
      ...HELLO,
      protocol: 1,
      clusterId: "c".repeat(128),
      nodeId: "n".repeat(63),
      incarnation: "f".repeat(16),
      address: `${"h".repeat(256)}:65535`,
      apiUrl: `https://${"u".repeat(1_000)}`,
      peers: Array.from({ length: 64 }, (_, at) => [`n${at}`, `${"h".repeat(200)}:7400`] as const),
    };
    const bytes = encodeAck(long);
    expect(bytes.length).toBeLessThan(HANDSHAKE_BYTES_MAX);
    const decoded = decodeAck(bytes);
    expect(decoded.ok && decoded.value.peers.length).toBeGreaterThan(0);
    expect(decoded.ok && decoded.value.peers.length).toBeLessThanOrEqual(PEERS_TOLD_MAX);
  });

  it("speaks the highest version in common", () => {
    expect([commonProtocol(1, 1), commonProtocol(1, 200), commonProtocol(0, 1)]).toEqual([1, 7, 1]);
    expect([commonProtocol(8, 9), commonProtocol(0, 0), commonProtocol(3, 1)]).toEqual([null, null, null]);
  });

  it("tells a version with nothing in common from garbage, whatever follows it", () => {
    const future = encodeHello({ ...HELLO, protocolMin: 8, protocolMax: 9 }).slice(0, 20);
    expect(decodeHello(future)).toMatchObject({ ok: false, reason: "protocol" });
  });

  it("refuses any bytes without throwing, also those of a hello with one bit flipped", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(decodeHello(bytes).ok).toBe(false);
        decodeAck(bytes);
        decodeRefuse(bytes);
      }),
    );
    const good = encodeHello(HELLO);
    fc.assert(
      fc.property(fc.nat(good.length * 8 - 1), (bit) => {
        const flipped = good.slice();
        flipped[bit >> 3]! ^= 1 << (bit & 7);
        const decoded = decodeHello(flipped);
        if (decoded.ok) expect(decoded.value.nodeId).toMatch(/^[a-z0-9][a-z0-9-]*$/);
      }),
    );
  });

  it("carries a reason that can't harm a log, and knows one it has never heard of", () => {
    const message = `two\nlines\u001b[31m`;
    expect(decodeRefuse(encodeRefuse({ reason: "protocol", message }))).toEqual({
      reason: "protocol",
      message: "two?lines?[31m",
    });
    expect(decodeRefuse(encodeRefuse({ reason: "invented" as never, message: "x" }))?.reason).toBe("other");
  });
});
