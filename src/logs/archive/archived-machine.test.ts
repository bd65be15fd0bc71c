import { describe, expect, test } from "vitest";
import { DecodeError } from "../../core/kit/bytes.ts";
import { wholeOf } from "../../core/kit/pieces.ts";
import { TestDisk } from "../../engine/test-disk.ts";
import type { StateMachine } from "../../ports/state-machine.ts";
import { filled, open, sealedEvents } from "../../../test/archive/test-archive.ts";
import { archivedMachine, withCapture } from "./archived-machine.ts";
import type { Archive } from "./index.ts";

const STATE = Uint8Array.of(1, 2, 3);
const events = sealedEvents(12);

function machineOver(archive: Archive, restore: (data: Uint8Array) => void = () => undefined): StateMachine {
  return archivedMachine({ apply: () => undefined, snapshot: () => STATE, restore }, () => archive);
}

async function snapshotBytes(): Promise<Uint8Array> {
  const { archive } = await filled(new TestDisk(), events);
  return wholeOf(await machineOver(archive).snapshot());
}

describe("a machine with its archive", () => {
  test("has one snapshot of both, which gives another both", async () => {
    const restored: Uint8Array[] = [];
    const { archive } = await open(new TestDisk());
    machineOver(archive, (data) => void restored.push(data)).restore(await snapshotBytes());
    expect(restored).toEqual([STATE]);
    expect(archive.lastSequence).toBe(12);
  });

  test("refuses every shortened snapshot, and one with a flipped bit never with anything but an error of ours", async () => {
    const bytes = await snapshotBytes();
    const { archive } = await open(new TestDisk());
    const machine = machineOver(archive);
    for (let size = 1; size < bytes.length; size += 7) {
      expect(() => machine.restore(bytes.subarray(0, size))).toThrow(
        expect.objectContaining({ code: "SNAPSHOT_INVALID" }),
      );
    }
    expect(() => machine.restore(Uint8Array.from([...bytes, 0]))).toThrow(
      expect.objectContaining({ code: "SNAPSHOT_INVALID" }),
    );
    expect(() => machine.restore(Uint8Array.from([9, ...bytes.subarray(1)]))).toThrow(
      expect.objectContaining({ code: "FORMAT_UNSUPPORTED" }),
    );
    expect(archive.lastSequence).toBe(0);
  });

  test.each([
    ["a DecodeError", new DecodeError("malformed", "a job of no kind")],
    ["a RangeError", new RangeError("Invalid array length")],
    ["a SyntaxError", new SyntaxError("Unexpected token")],
  ])(
    "tells %s of the state as SNAPSHOT_INVALID, with the reason, and leaves the archive alone",
    async (_what, cause) => {
      const bytes = await snapshotBytes();
      const disk = new TestDisk();
      const { archive } = await open(disk);
      const calls = disk.calls.length;
      const machine = machineOver(archive, () => {
        throw cause;
      });
      expect(() => machine.restore(bytes)).toThrow(
        expect.objectContaining({ code: "SNAPSHOT_INVALID", message: expect.stringContaining(cause.message), cause }),
      );
      expect([archive.lastSequence, disk.calls.length]).toEqual([0, calls]);
    },
  );

  test("lets a mistake of ours through as it is", async () => {
    const { archive } = await open(new TestDisk());
    const bytes = await snapshotBytes();
    const machine = machineOver(archive, () => {
      throw new TypeError("a bug");
    });
    expect(() => machine.restore(bytes)).toThrow(TypeError);
  });

  test("has its part of the archive changed for a new cluster, and nothing else", async () => {
    const bytes = await snapshotBytes();
    expect(withCapture(bytes, (captured) => captured)).toEqual(bytes);
    expect(withCapture(new Uint8Array(0), () => Uint8Array.of(7))).toEqual(new Uint8Array(0));
    expect(() => withCapture(bytes.subarray(0, 9), (captured) => captured)).toThrow(
      expect.objectContaining({ code: "SNAPSHOT_INVALID" }),
    );
  });
});
