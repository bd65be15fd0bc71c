import { expect, test } from "vitest";
import { seededRandom } from "../core/kit/random.ts";
import type { FoundLog } from "./data-directory.ts";
import { CRASH_MODES, TestDisk } from "./test-disk.ts";
import { HeldDisk, n1, Stage, type Actor } from "./test-engine.ts";
import { bytesOf } from "./test-storage.ts";

// What an archive that syncs each event at once would know: the highest index that was ever applied. If no honest crash leaves
// a log that ends before it, neither does one with an archive that syncs later.

const drain = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const CALLS = 40;

test("on the only voter no crash and no power cut leaves a log that ends before what was applied from it", async () => {
  const ahead: string[] = [];
  let asked = 0;
  let crashes = 0;
  for (const mode of CRASH_MODES) {
    for (let call = 1; call <= CALLS; call++) {
      const disk = new TestDisk();
      const known = { applied: 0 };
      const witness = ({ snapshot, entries }: FoundLog): Promise<null> => {
        asked++;
        const last = entries.at(-1)?.index ?? snapshot?.meta.index ?? 0;
        if (last < known.applied)
          ahead.push(`${mode}/${call}: ${known.applied} was applied, and the log ends at ${last}`);
        return Promise.resolve(null);
      };
      // The second life crashes too, on what the first one has left.
      for (let life = 0; life < 3; life++) {
        const stage = new Stage([n1], drain);
        if (life > 0) disk.crashAt(call);
        const actor = await stage
          .start(n1, { witness, snapshots, segmentBytesMax: 600 }, new HeldDisk(disk))
          .catch(() => null);
        if (actor !== null) await lived(stage, actor, known);
        if (disk.isDead) crashes++;
        disk.restart(mode, seededRandom(`${mode}/${call}/${life}`));
      }
    }
  }
  expect(ahead).toEqual([]);
  expect(crashes).toBeGreaterThan(100);
  expect(asked).toBeGreaterThan(100);
});

const snapshots = { afterEntries: 5, keepEntries: 1 };

/** Leads and writes until its disk fails, and is never closed. */
async function lived(stage: Stage, { engine }: Actor, known: { applied: number }): Promise<void> {
  const look = (): void => void (known.applied = Math.max(known.applied, engine.status().applied));
  engine.campaign();
  await stage.settle();
  look();
  for (let at = 0; at < 8; at++) {
    engine.propose([bytesOf(`w${at}`)]).catch(() => undefined);
    await stage.settle();
    look();
  }
}
