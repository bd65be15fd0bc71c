// Every certificate of three islands is replaced by SIGHUP while all of them are called all the time: no call fails, and who leads goes on leading.

import { expect, it } from "vitest";
import { ISLANDS_START_MS, PATIENT_MS, type TestIsland, TestIslands } from "./test-islands.ts";

/** Of everybody, before each step and after the last one. */
const STEP_CALLS = 100;
const ROUNDS = 2;

it(
  "0 calls fail while certificates are replaced under load, and the leader keeps its term",
  async () => {
    await using islands = await TestIslands.start();
    const { island: leader, term } = await islands.leader();
    const failed: unknown[] = [];
    let done = 0;
    const over = new AbortController();
    const work = async (from: TestIsland): Promise<void> => {
      for (let at = 0; !over.signal.aborted; at++) {
        const to = islands.all[at % islands.all.length]!;
        const answer = await to.call("/v1/tc/leader", { limitMs: PATIENT_MS }, from).catch((error: unknown) => error);
        if ((answer as { status?: number }).status !== 200) failed.push(answer);
        done++;
      }
    };
    const underLoad = async (): Promise<void> => {
      const from = done;
      await islands.until("calls", PATIENT_MS, () => done - from > STEP_CALLS);
    };
    const workers = islands.all.map((island) => work(island));
    const reloads = (island: TestIsland): number => island.logged.filter(({ event }) => event === "reloaded").length;
    await underLoad();
    for (let round = 1; round <= ROUNDS; round++) {
      for (const island of islands.all) {
        await island.certify();
        island.node.signal("SIGHUP");
        await islands.until("certificates that were read again", PATIENT_MS, () => reloads(island) === round);
        await underLoad();
      }
    }
    // Another node's certificate would be another member: nothing changes.
    const [first] = islands.all;
    await first!.certify("server", "i9");
    first!.node.signal("SIGHUP");
    await islands.until("a certificate that was refused", PATIENT_MS, () =>
      first!.node.log().includes("one of node i9"),
    );
    await first!.certify();
    over.abort();
    await Promise.all(workers);
    expect(failed).toEqual([]);
    expect(await islands.leader()).toEqual({ island: leader, term });
    console.log(`${done} calls, 0 failed`);
  },
  ISLANDS_START_MS + 4 * PATIENT_MS,
);
