import { begun, type Pieces, wholeOf } from "../../core/kit/pieces.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ListMachine } from "../../engine/test-engine.ts";
import { bytesOf, digest } from "../../engine/test-storage.ts";
import type { StateMachine } from "../../ports/state-machine.ts";
import { asNewCluster, ClusterMachine, encodeClusterCommand, innerProposals, lineOf } from "./cluster-machine.ts";
import { CHAIN_POINTS_MAX, INVITED_MAX } from "./limits.ts";

interface Applied {
  readonly index: number;
  readonly term: number;
  readonly data: Uint8Array;
}

const inner = (text: string): Uint8Array => new Uint8Array([1, ...bytesOf(text)]);
const entry = (index: number, data: Uint8Array, term = 1): Applied => ({ index, term, data });

function machineOf(entries: readonly Applied[] = []): { machine: ClusterMachine; list: ListMachine } {
  const list = new ListMachine();
  const machine = new ClusterMachine([list], digest);
  for (const one of entries) machine.apply(one);
  return { machine, list };
}

const commands = fc.oneof(
  fc.string({ maxLength: 8 }).map(inner),
  fc.subarray(["n1", "n2", "n3", "n4"]).map((nodeIds) => encodeClusterCommand({ kind: "invite", nodeIds })),
  fc.constantFrom("n1", "n2", "n9").map((nodeId) => encodeClusterCommand({ kind: "settled", nodeId })),
  fc.uint8Array({ minLength: 1, maxLength: 12 }),
);
/** Indexes with gaps, as no-ops and changes of membership leave them. */
const logs = fc
  .array(fc.record({ data: commands, gap: fc.integer({ min: 1, max: 3 }), term: fc.integer({ min: 1, max: 3 }) }))
  .map((steps) => {
    let index = 0;
    return steps.map(({ data, gap, term }) => entry((index += gap), data, term));
  });

describe("the cluster's machine", () => {
  test("hands on what belongs to the inner machine, as it was proposed, and nothing that is empty", async () => {
    const proposed: Uint8Array[] = [];
    const proposals = {
      propose: (data: readonly Uint8Array[]) => {
        proposed.push(...data);
        return Promise.resolve({ outcome: "unknown" as const });
      },
    };
    await innerProposals(() => proposals).propose([bytesOf("a"), bytesOf(""), bytesOf("b")]);
    const { list } = machineOf(proposed.map((data, at) => entry(at + 1, data)));
    expect(list.applied).toEqual(["a", "b"]);
  });

  test("keeps who is invited until it is settled, sorted and bounded", () => {
    const { machine } = machineOf();
    expect(machine.wasInvited).toBe(false);
    machine.apply(entry(1, encodeClusterCommand({ kind: "invite", nodeIds: ["n3", "n2"] })));
    machine.apply(entry(2, encodeClusterCommand({ kind: "invite", nodeIds: ["n2", "n1"] })));
    expect(machine.invited).toEqual(["n1", "n2", "n3"]);
    machine.apply(entry(3, encodeClusterCommand({ kind: "settled", nodeId: "n2" })));
    machine.apply(entry(4, encodeClusterCommand({ kind: "settled", nodeId: "n9" })));
    expect(machine.invited).toEqual(["n1", "n3"]);
    expect(machine.wasInvited).toBe(true);
    const many = Array.from({ length: INVITED_MAX }, (_, at) => `m${at}`);
    machine.apply(entry(5, encodeClusterCommand({ kind: "invite", nodeIds: many })));
    expect(machine.invited).toHaveLength(INVITED_MAX);
  });

  test("an entry of a later release changes nothing but the hash, and is counted", () => {
    const known = encodeClusterCommand({ kind: "settled", nodeId: "n1" });
    const strange = [
      new Uint8Array([2, 1, 2, 3]),
      new Uint8Array([0]),
      known.with(1, 2),
      known.with(2, 99),
      new Uint8Array([...known, 7]),
      known.subarray(0, known.length - 1),
    ];
    const { machine, list } = machineOf();
    machine.apply(entry(1, encodeClusterCommand({ kind: "invite", nodeIds: ["n1"] })));
    for (const [at, data] of strange.entries()) {
      const before = machine.head.hash;
      machine.apply(entry(at + 2, data));
      expect(machine.head.hash).not.toBe(before);
    }
    expect(machine.unknownCommands).toBe(strange.length);
    expect(machine.invited).toEqual(["n1"]);
    expect(list.applied).toEqual([]);
  });
});

describe("the hash chain", () => {
  test("differs where index, term or data of any entry differ, and stays different", () => {
    const base = [entry(1, inner("a")), entry(3, inner("b")), entry(4, inner("c"))];
    const others = [
      [entry(2, inner("a")), ...base.slice(1)],
      [entry(1, inner("a"), 2), ...base.slice(1)],
      [entry(1, inner("x")), ...base.slice(1)],
      base.slice(1),
      base.slice(0, 2),
    ];
    const hashes = [base, ...others].map((log) => machineOf(log).machine.head.hash);
    expect(new Set(hashes).size).toBe(hashes.length);
  });

  test("is the CRC-32 over index, term and data behind the one before, for entries of any size", () => {
    const { machine } = machineOf();
    let hash = 0;
    for (const [at, length] of [1, 128, 1_007, 1_008, 1_009, 5_000].entries()) {
      const one = entry(at + 2 ** 40, new Uint8Array(length).fill(1), 2 ** 33 + at);
      const link = new DataView(new ArrayBuffer(16));
      link.setBigUint64(0, BigInt(one.index));
      link.setBigUint64(8, BigInt(one.term));
      hash = digest.crc32(new Uint8Array([...new Uint8Array(link.buffer), ...one.data]), hash);
      machine.apply(one);
      expect([length, machine.head]).toEqual([length, { index: one.index, hash }]);
    }
  });

  test("is known at every index from the oldest point to the head, and only there", () => {
    const { machine } = machineOf();
    expect(machine.hashAt(0)).toBeNull();
    const hashes = new Map<number, number>();
    const last = 2 * (CHAIN_POINTS_MAX + 100);
    for (let index = 2; index <= last; index += 2) {
      machine.apply(entry(index, inner("x")));
      hashes.set(index, machine.head.hash);
    }
    const oldest = last - 2 * (CHAIN_POINTS_MAX - 1);
    expect(machine.hashAt(oldest - 1)).toBeNull();
    expect(machine.hashAt(last + 1)).toBeNull();
    for (const index of [oldest, oldest + 2, last - 2, last]) expect(machine.hashAt(index)).toBe(hashes.get(index));
    // Between two entries the state is that of the lower one.
    expect(machine.hashAt(oldest + 1)).toBe(hashes.get(oldest));
    expect(machine.hashAt(last - 1)).toBe(hashes.get(last - 2));
  });
});

describe("a snapshot", () => {
  test("restores everything: cut anywhere, the rest of the log leads to the same state and the same bytes", async () => {
    await fc.assert(
      fc.asyncProperty(logs, fc.nat(), async (log, at) => {
        const cut = log.length === 0 ? 0 : at % (log.length + 1);
        const { machine: whole, list: wholeList } = machineOf(log);
        const { machine: part } = machineOf(log.slice(0, cut));
        const { machine: restored, list } = machineOf([entry(1, inner("other"))]);
        restored.restore(wholeOf(await part.snapshot()));
        for (const one of log.slice(cut)) restored.apply(one);
        expect(list.applied).toEqual(wholeList.applied);
        expect(restored.invited).toEqual(whole.invited);
        expect(restored.wasInvited).toBe(whole.wasInvited);
        expect(restored.head).toEqual(whole.head);
        expect(await restored.snapshot()).toEqual(await whole.snapshot());
      }),
      { numRuns: 60 },
    );
  });

  test("is of the moment at which it was asked for, also where the inner machine takes longer", async () => {
    let finish: (data: Uint8Array) => void = () => undefined;
    const list = new ListMachine();
    list.snapshot = () => new Promise((resolve) => (finish = resolve));
    const machine = new ClusterMachine([list], digest);
    machine.apply(entry(1, encodeClusterCommand({ kind: "invite", nodeIds: ["n2"] })));
    const { head } = machine;
    const taken = machine.snapshot();
    machine.apply(entry(2, encodeClusterCommand({ kind: "settled", nodeId: "n2" })));
    finish(bytesOf(`["a"]`));
    const { machine: restored, list: restoredList } = machineOf();
    restored.restore(wholeOf(await taken));
    expect([restored.invited, restored.head, restoredList.applied]).toEqual([["n2"], head, ["a"]]);
  });

  test("without any bytes is the state before the first entry", () => {
    const { machine, list } = machineOf([entry(1, encodeClusterCommand({ kind: "invite", nodeIds: ["n2"] }))]);
    machine.apply(entry(2, inner("a")));
    machine.restore(new Uint8Array(0));
    expect([machine.head, machine.invited, machine.wasInvited, list.applied]).toEqual([
      { index: 0, hash: 0 },
      [],
      false,
      [],
    ]);
  });

  test("that is damaged or of a later release is refused, and nothing has changed", async () => {
    const { machine } = machineOf([
      entry(1, inner("a")),
      entry(2, encodeClusterCommand({ kind: "invite", nodeIds: ["n2"] })),
    ]);
    const good = wholeOf(await machine.snapshot());
    const later = { code: "FORMAT_UNSUPPORTED" };
    const { machine: other, list } = machineOf([entry(1, inner("kept"))]);
    expect(() => other.restore(good.with(0, 5))).toThrow(expect.objectContaining(later));
    for (const bad of [good.subarray(0, good.length - 1), new Uint8Array([...good, 0]), good.with(1, 9)]) {
      expect(() => other.restore(bad)).toThrow(expect.objectContaining({ code: "SNAPSHOT_INVALID" }));
    }
    expect(list.applied).toEqual(["kept"]);
    expect(other.invited).toEqual([]);
  });

  test("can be given another inner state, for a new cluster: nobody is invited there, and it invites nobody again", async () => {
    const { machine } = machineOf([
      entry(1, inner("a")),
      entry(2, encodeClusterCommand({ kind: "invite", nodeIds: ["n2"] })),
    ]);
    const change = (data: Uint8Array): Uint8Array => {
      expect(data).toEqual(bytesOf(`["a"]`));
      return bytesOf(`["a","b"]`);
    };
    const changed = asNewCluster(wholeOf(await machine.snapshot()), { ...NEW, change });
    const { machine: other, list } = machineOf();
    other.restore(changed);
    expect([list.applied, other.head, other.invited, other.wasInvited]).toEqual([["a", "b"], machine.head, [], true]);
    expect(() => asNewCluster(changed.with(0, 7), NEW)).toThrow(/version 7/);
  });
});

const NEW = { clusterId: "c-new", from: null, isPaused: false, change: (data: Uint8Array) => data };

describe("where a cluster comes from", () => {
  test("a snapshot names its cluster, and a new one made of it names that as its ancestor", async () => {
    const { machine } = machineOf([entry(1, inner("a"))]);
    machine.belongsTo("c-old");
    const saved = wholeOf(await machine.snapshot());
    expect(lineOf(saved)).toEqual({ clusterId: "c-old", ancestors: [], isPaused: false });
    const { machine: other } = machineOf();
    other.belongsTo("c-new");
    other.restore(asNewCluster(saved, NEW));
    expect([other.ancestors, other.isPaused]).toEqual([["c-old"], false]);
    // And its own snapshots, which others join by.
    expect(lineOf(wholeOf(await other.snapshot()))).toEqual({
      clusterId: "c-new",
      ancestors: ["c-old"],
      isPaused: false,
    });
  });

  test("of older releases it is not known, and then only who recovers a data directory can say", async () => {
    const { machine } = machineOf([entry(1, inner("a"))]);
    const saved = wholeOf(await machine.snapshot());
    expect([saved[0], lineOf(saved).clusterId]).toEqual([2, null]);
    expect(lineOf(asNewCluster(saved, NEW)).ancestors).toEqual([]);
    expect(lineOf(asNewCluster(saved, { ...NEW, from: "c-old" })).ancestors).toEqual(["c-old"]);
  });

  test("after nine recoveries all nine are named, the newest first; after many the last sixteen", async () => {
    const { machine } = machineOf();
    machine.belongsTo("c-0");
    let saved = wholeOf(await machine.snapshot());
    const recover = (to: number): void => {
      saved = asNewCluster(saved, { ...NEW, clusterId: `c-${to}`, from: `c-${to - 1}` });
    };
    for (let time = 1; time <= 9; time++) recover(time);
    expect(lineOf(saved).ancestors).toEqual(Array.from({ length: 9 }, (_, at) => `c-${8 - at}`));
    for (let time = 10; time <= 30; time++) recover(time);
    expect(lineOf(saved).ancestors).toEqual(Array.from({ length: 16 }, (_, at) => `c-${29 - at}`));
  });

  test("what is made of a paused one is paused too, whoever makes it", async () => {
    const { machine } = machineOf([entry(1, inner("a"))]);
    const saved = asNewCluster(wholeOf(await machine.snapshot()), { ...NEW, isPaused: true });
    expect(lineOf(asNewCluster(saved, { ...NEW, clusterId: "c-newer", from: "c-new" }))).toMatchObject({
      clusterId: "c-newer",
      isPaused: true,
    });
  });

  test("one that is paused stays so over snapshots until it is resumed, and that is said once", async () => {
    const { machine: first } = machineOf([entry(1, inner("a"))]);
    const { machine } = machineOf();
    let resumed = 0;
    machine.onResumed(() => resumed++);
    machine.restore(asNewCluster(wholeOf(await first.snapshot()), { ...NEW, isPaused: true }));
    machine.restore(wholeOf(await machine.snapshot()));
    expect([machine.isPaused, resumed]).toEqual([true, 0]);
    machine.apply(entry(2, encodeClusterCommand({ kind: "resumed" })));
    machine.apply(entry(3, encodeClusterCommand({ kind: "resumed" })));
    expect([machine.isPaused, resumed, machine.unknownCommands]).toEqual([false, 1, 0]);
    // Nor a new one that is made of it.
    expect(lineOf(asNewCluster(wholeOf(await machine.snapshot()), NEW)).isPaused).toBe(false);
  });
});

describe("a snapshot of several inner machines", () => {
  /** In pieces, each made when it is asked for. */
  function large(name: string): StateMachine & { made: number } {
    const machine = { made: 0, apply: () => undefined, restore: () => undefined, snapshot: () => begun(slices()) };
    function* slices(): Generator<Uint8Array, void, void> {
      for (const byte of bytesOf(JSON.stringify([name]))) {
        machine.made++;
        yield Uint8Array.of(byte);
      }
    }
    return machine;
  }

  test("makes each of them in pieces, whatever follows it", async () => {
    const [first, second] = [large("book"), large("receipts")];
    const machine = new ClusterMachine([new ListMachine(), first, second], digest);
    const pieces = (await machine.snapshot()) as Pieces;
    expect([first.made, second.made]).toEqual([1, 1]);
    const restored = [new ListMachine(), new ListMachine(), new ListMachine()];
    const whole = wholeOf(pieces);
    expect(whole[0]).toBe(4);
    new ClusterMachine(restored, digest).restore(whole);
    expect(restored.map(({ applied }) => applied)).toEqual([[], ["book"], ["receipts"]]);
    // One that knows less of it refuses nothing, and one that knows more has the state before the first entry.
    const more = new ListMachine();
    new ClusterMachine([...restored, more], digest).restore(whole);
    expect(more.applied).toEqual([]);
  });

  test("has the bytes of older releases while the third has no state", async () => {
    const none = { snapshot: () => new Uint8Array(0), apply: () => undefined, restore: () => undefined };
    const two = (): StateMachine[] => [new ListMachine(), large("book")];
    const before = wholeOf(await new ClusterMachine(two(), digest).snapshot());
    expect(wholeOf(await new ClusterMachine([...two(), none], digest).snapshot())).toEqual(before);
    expect(before[0]).toBe(2);
    const line = new ClusterMachine([...two(), none], digest);
    line.belongsTo("c1");
    expect(wholeOf(await line.snapshot())[0]).toBe(3);
  });

  test("keeps the third one's state in a new cluster, in a version that no older release leaves it out of", async () => {
    const machine = new ClusterMachine([new ListMachine(), large("book"), large("receipts")], digest);
    const whole = wholeOf(await machine.snapshot());
    const seen: number[] = [];
    const change = (data: Uint8Array, at: number): Uint8Array => {
      seen.push(at);
      return data;
    };
    const recovered = asNewCluster(whole, { clusterId: "c2", from: "c1", isPaused: false, change });
    expect([seen, recovered[0]]).toEqual([[0, 1, 2], 4]);
    const restored = [new ListMachine(), new ListMachine(), new ListMachine()];
    new ClusterMachine(restored, digest).restore(recovered);
    expect(restored.map(({ applied }) => applied)).toEqual([[], ["book"], ["receipts"]]);
    expect(lineOf(recovered)).toMatchObject({ clusterId: "c2", ancestors: ["c1"] });
  });
});
