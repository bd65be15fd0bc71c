// Design D10: whatever a snapshot weighs, no turn of the loop does more than a slice of the work.

import { crc32 } from "node:zlib";
import { expect, test } from "vitest";
import type { Digest } from "../ports/digest.ts";
import { ListMachine, n1, n2, n3, Stage, type Actor } from "./test-engine.ts";
import { bytesOf, digest } from "./test-storage.ts";

const MIB = 1024 * 1024;
const CONTENTS_BYTES = 5 * MIB;
/** Heads, entries and messages of one turn. */
const SMALL_BYTES = 64 * 1024;

class LargeMachine extends ListMachine {
  override snapshot(): Uint8Array {
    return bytesOf(JSON.stringify(this.applied).padEnd(CONTENTS_BYTES));
  }
}

/** A stage that knows how much was checksummed in the busiest turn. */
class MeasuredStage extends Stage {
  busiestBytes = 0;
  #turnBytes = 0;
  readonly digest: Digest = {
    ...digest,
    crc32: (bytes, seed) => {
      this.#turnBytes += bytes.length;
      this.busiestBytes = Math.max(this.busiestBytes, this.#turnBytes);
      return crc32(bytes, seed);
    },
  };

  constructor() {
    super([n1, n2, n3], async () => {
      await new Promise((resolve) => setImmediate(resolve));
      this.#turnBytes = 0;
    });
  }

  actor(peer: typeof n1, afterEntries: number): Promise<Actor> {
    const { digest } = this;
    return this.start(peer, { digest, stateMachine: new LargeMachine(), snapshots: { afterEntries, keepEntries: 1 } });
  }
}

/** Only the leader makes snapshots, so that nobody else's work is counted. */
async function behind(): Promise<{ stage: MeasuredStage; leader: Actor }> {
  const stage = new MeasuredStage();
  const leader = await stage.actor(n1, 5);
  await stage.actor(n2, 1_000);
  await stage.lead(leader);
  for (let i = 0; i < 9; i++) {
    void leader.engine.propose([bytesOf(`w${i}`)]);
    await stage.settle();
  }
  await stage.advance(100);
  expect(leader.engine.snapshot).toMatchObject({ bytes: CONTENTS_BYTES });
  return { stage, leader };
}

/** Knows whether what it restored was prepared before, and in how many slices. */
class PreparingMachine extends LargeMachine {
  slices = 0;
  isPrepared = false;
  #prepared: Uint8Array | null = null;

  *prepare(data: Uint8Array): Generator<void, void, void> {
    for (let at = 0; at < 10; at++) {
      this.slices++;
      yield;
    }
    this.#prepared = data;
  }

  override restore(data: Uint8Array): void {
    this.isPrepared = this.#prepared === data;
    super.restore(data);
  }
}

test("a large snapshot is prepared slice by slice before it is restored", async () => {
  const { stage } = await behind();
  const stateMachine = new PreparingMachine();
  const late = await stage.start(n3, { stateMachine, snapshots: { afterEntries: 1_000, keepEntries: 1 } });
  await stage.advance(100);
  expect(late.engine.counts.snapshotsRestored).toBe(1);
  expect([stateMachine.isPrepared, stateMachine.slices]).toEqual([true, 10]);
});

test("a large snapshot is sealed, sent, checked and installed a megabyte in a turn", async () => {
  const { stage, leader } = await behind();
  const late = await stage.actor(n3, 1_000);
  await stage.advance(100);
  expect(late.engine.counts.snapshotsRestored).toBe(1);
  expect(late.engine.status().lastIndex).toBe(leader.engine.status().lastIndex);
  expect(stage.busiestBytes).toBeLessThanOrEqual(MIB + SMALL_BYTES);
});
