// The files of a coordinator: what was written is read again, for ever; whatever else is there is damage, or a later release's.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import type { MembershipLease } from "./members.ts";
import type { Ledger } from "./model.ts";
import { decodeLeases, decodeLedger, encodeLeases, encodeLedger, type KeptLedger } from "./records.ts";
import { EMPTY_LEDGER } from "./roster.ts";
import { peer } from "./test-lease.ts";

const REGISTRY = [{ backendHash: "00ff", endpoint: "https://a:7800" }];
const LEDGER: Ledger = {
  clusterId: "cluster-1",
  term: 7,
  grant: { term: 7, leader: peer("b@2"), released: false },
  roster: {
    term: 7,
    version: 3,
    recoveredBy: null,
    voters: [
      { peer: peer("a@1"), endpoint: "https://a:7800" },
      { peer: peer("b@2"), endpoint: "https://b:7800" },
    ],
    registry: REGISTRY,
  },
  shown: { term: 6, version: 1, registry: REGISTRY },
};
const KEPT: KeptLedger = { voter: peer("a@1"), log: "3f9a", ledger: LEDGER };
const LEASES: readonly MembershipLease[] = [
  { identity: "b", endpoint: "https://b:7800", updatedAtMs: 1_767_225_600_000.5, expiresAtMs: 1_767_225_609_000.5 },
];

/** As a release wrote it: never changed. */
const LEDGER_1 = `5b5c8542 tenure-tc-ledger 1
{"voter":"a@1","log":"3f9a","cluster_id":"cluster-1","term":7,"grant":{"term":7,"leader":"b@2","released":false},"roster":{"term":7,"version":3,"recovered_by":null,"voters":[{"peer":"a@1","endpoint":"https://a:7800"},{"peer":"b@2","endpoint":"https://b:7800"}],"registry":[{"backend_hash":"00ff","endpoint":"https://a:7800"}]},"shown":{"term":6,"version":1,"registry":[{"backend_hash":"00ff","endpoint":"https://a:7800"}]}}
`;
const LEASES_1 = `f5c30c11 tenure-tc-leases 1
[{"identity":"b","endpoint":"https://b:7800","updated_at_ms":1767225600000.5,"expires_at_ms":1767225609000.5}]
`;

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((one: unknown) => sorted(one));
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, one]) => [name, sorted(one)]);
}

/** With the right checksum. */
function signed(text: string): Uint8Array {
  return bytesOf(`${digest.crc32(bytesOf(text)).toString(16).padStart(8, "0")} ${text}`);
}

describe("a ledger", () => {
  test("of format 1 is written so, and read for ever", () => {
    expect(new TextDecoder().decode(encodeLedger(KEPT, digest))).toBe(LEDGER_1);
    expect(decodeLedger(bytesOf(LEDGER_1), digest)).toEqual({ kind: "whole", value: KEPT });
    const empty = { ...KEPT, ledger: EMPTY_LEDGER };
    expect(decodeLedger(encodeLedger(empty, digest), digest)).toEqual({ kind: "whole", value: empty });
  });

  test("is what was written, whatever it holds", () => {
    const integer = fc.maxSafeNat();
    const key = fc.constantFrom("a@1", "b-2@3f9a", "n1@ffffffffffffffff").map(peer);
    const text = fc.string({ unit: "binary", maxLength: 6 }).filter((one) => one.isWellFormed());
    const registry = fc.array(fc.record({ backendHash: text, endpoint: text }), { maxLength: 2 });
    const voters = fc.array(fc.record({ peer: key, endpoint: text }), { minLength: 1, maxLength: 3 });
    const position = { term: integer, version: integer };
    const ledger = fc.record({
      clusterId: fc.option(text),
      term: integer,
      grant: fc.option(fc.record({ term: integer, leader: key, released: fc.boolean() })),
      roster: fc.option(fc.record({ ...position, recoveredBy: fc.option(key), voters, registry })),
      shown: fc.option(fc.record({ ...position, registry })),
    });
    fc.assert(
      fc.property(fc.record({ voter: key, log: text, ledger }), (kept) => {
        const read = decodeLedger(encodeLedger(kept, digest), digest);
        // As text: a deep comparison of hundreds of ledgers takes seconds.
        expect(read.kind === "whole" && JSON.stringify(sorted(read.value)) === JSON.stringify(sorted(kept))).toBe(true);
      }),
      { numRuns: 200 },
    );
  });

  test("with one wrong bit anywhere, or cut off anywhere, is damaged: never a later release's, never another ledger", () => {
    const whole = encodeLedger(KEPT, digest);
    const places = [...whole.keys()];
    const cut = places.filter((at) => decodeLedger(whole.subarray(0, at), digest).kind !== "damaged");
    const rotten = places.filter((at) =>
      [0, 1, 2, 3, 4, 5, 6, 7].some((bit) => {
        const bytes = whole.slice();
        bytes[at]! ^= 1 << bit;
        return decodeLedger(bytes, digest).kind !== "damaged";
      }),
    );
    expect([cut, rotten]).toEqual([[], []]);
  });

  test("of a later format says so, whatever follows; the checksum comes first", () => {
    expect(decodeLedger(signed("tenure-tc-ledger 2\nanything"), digest)).toEqual({ kind: "newer", format: 2 });
    expect(decodeLedger(bytesOf("00000000 tenure-tc-ledger 2\nanything"), digest).kind).toBe("damaged");
    expect(decodeLedger(signed("tenure-tc-leases 2\nanything"), digest).kind).toBe("damaged");
  });

  const body = JSON.parse(LEDGER_1.split("\n")[1]!) as Record<string, unknown>;
  const roster = body["roster"] as Record<string, unknown>;
  const wrong: Record<string, unknown> = {
    "no object": [body],
    "a field too many": { ...body, more: 1 },
    "a field under another name": { ...body, log: undefined, lag: "3f9a" },
    "a voter that is none": { ...body, voter: "a" },
    "a text as term": { ...body, term: "7" },
    "half a term": { ...body, term: 0.5 },
    "a term below 0": { ...body, term: -1 },
    "a term beyond what is exact": { ...body, term: 2 ** 53 },
    "a grant without its leader": { ...body, grant: { term: 7, released: false } },
    "a grant that is neither released nor not": { ...body, grant: { term: 7, leader: "b@2", released: 0 } },
    "a roster without voters": { ...body, roster: { ...roster, voters: [] } },
    "voters that are no list": { ...body, roster: { ...roster, voters: { length: 1 } } },
    "a registry of texts": { ...body, shown: { term: 1, version: 1, registry: ["00ff"] } },
    "a key of the prototype": JSON.parse(`{"__proto__":${JSON.stringify(body)}}`),
    nothing: null,
  };

  test.each(Object.entries(wrong))("with %s is damaged, and no crash", (_what, value) => {
    expect(decodeLedger(signed(`tenure-tc-ledger 1\n${JSON.stringify(value)}\n`), digest).kind).toBe("damaged");
  });

  test("that is no JSON, or no UTF-8, is damaged", () => {
    expect(decodeLedger(signed("tenure-tc-ledger 1\n{"), digest).kind).toBe("damaged");
    expect(decodeLedger(Uint8Array.of(0xff, 0xfe, 0x00), digest).kind).toBe("damaged");
  });
});

describe("membership leases", () => {
  test("of format 1 are written so, and read for ever", () => {
    const written = encodeLeases(LEASES, digest);
    expect(new TextDecoder().decode(written)).toBe(LEASES_1);
    expect(decodeLeases(written, digest)).toEqual({ kind: "whole", value: LEASES });
  });

  test("of wrong types, or more than are kept, are damaged", () => {
    const lease = { identity: "b", endpoint: "e", updated_at_ms: 1, expires_at_ms: 2 };
    const read = (value: unknown) =>
      decodeLeases(signed(`tenure-tc-leases 1\n${JSON.stringify(value)}\n`), digest).kind;
    expect(read(Array.from({ length: 256 }, () => lease))).toBe("whole");
    expect(read(Array.from({ length: 257 }, () => lease))).toBe("damaged");
    expect(read([{ ...lease, expires_at_ms: "2" }])).toBe("damaged");
    expect(read({ length: 0 })).toBe("damaged");
  });
});
