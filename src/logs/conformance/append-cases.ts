// Opening, appending and reading while nothing goes wrong.

import { TenureError } from "../../core/kit/errors.ts";
import { expect } from "../../loops/conformance.ts";
import { type Case, textOf } from "./stage.ts";

const PIPELINED = 10;

export const APPEND_CASES: readonly Case[] = [
  {
    name: "a new log is empty, and opening it says so",
    async play(stage) {
      const before = stage.world.log(stage.a).head();
      expect(before.position === 0 && before.epoch === 0, `expected an empty head, got ${JSON.stringify(before)}`);
      const leader = await stage.lead(stage.a);
      expect(leader.head.position === 0, `an empty log was opened at position ${leader.head.position}`);
      expect((await stage.read(stage.a, 1, 10)).length === 0, "an empty log had something to read");
    },
  },
  {
    name: "an append is committed directly behind what it names, and is there for every node",
    async play(stage) {
      const leader = await stage.lead(stage.a);
      const first = await stage.commit(leader);
      const second = await stage.commit(leader);
      const head = leader.log.head();
      expect(head.position === 2, `two records are committed, and the head is ${head.position}`);
      expect(head.epoch === leader.epoch, `the epoch is ${leader.epoch}, and the head says ${head.epoch}`);
      for (const node of stage.world.nodes) {
        await stage.reaches(node, 2);
        const records = await stage.read(node, 1, 10);
        const texts = records.map(({ data }) => textOf(data));
        expect(String(texts) === String([...first.texts, ...second.texts]), `${node} has ${String(texts)}`);
        expect(
          records.every((record, at) => record.position === at + 1 && record.epoch === leader.epoch),
          `${node} has other positions or epochs: ${JSON.stringify(records)}`,
        );
      }
    },
  },
  {
    name: "a batch gets consecutive positions, and the answer names the last",
    async play(stage) {
      const leader = await stage.lead(stage.a);
      await stage.commit(leader, 3);
      await stage.commit(leader, 1);
      await stage.commit(leader, 7);
      expect(leader.log.head().position === 11, `eleven records end at ${leader.log.head().position}`);
    },
  },
  {
    name: "records keep their bytes, also none and also when the caller uses its buffer again",
    async play(stage) {
      const leader = await stage.lead(stage.a);
      const batch = [new Uint8Array(0), Uint8Array.from({ length: 256 }, (_, at) => at)];
      const append = stage.sendBytes(leader, batch);
      batch[1]!.fill(7);
      await stage.answered(append);
      stage.committed(append);
      const [none, all] = await stage.read(stage.a, 1, 2);
      expect(none?.data.length === 0, "a record without bytes got some");
      expect(all?.data.every((byte, at) => byte === at) === true, "a record was changed after it was appended");
    },
  },
  {
    name: "appends that are sent without waiting are committed in the order of the calls",
    async play(stage) {
      const leader = await stage.lead(stage.a);
      const appends = Array.from({ length: PIPELINED }, (_, at) => stage.send(leader, 1 + (at % 3)));
      await stage.answered(...appends);
      for (const append of appends) stage.committed(append);
      const { texts } = await stage.contents(stage.a, leader.end);
      const expected = appends.flatMap((append) => append.texts);
      expect(String(texts) === String(expected), `the order is ${String(texts)}`);
    },
  },
  {
    name: "an append that names another position than the end writes nothing, and the epoch goes on",
    async play(stage) {
      const leader = await stage.lead(stage.a);
      await stage.commit(leader, 2);
      for (const after of [0, 1, 3, 100]) {
        const append = stage.send(leader, 1, after);
        await stage.answered(append);
        stage.refused(append, `the log ends at 2, and an append names ${after}`);
      }
      expect(leader.log.head().position === 2, `the head moved to ${leader.log.head().position}`);
      await stage.commit(leader);
    },
  },
  {
    name: "an append that is too large is refused as such, and the epoch goes on",
    async play(stage) {
      const leader = await stage.lead(stage.a);
      await stage.commit(leader);
      const large = [new Uint8Array(stage.world.tooLargeBytes)];
      const got = await stage.outcome(leader.log.append(leader.epoch, 1, large), "a large append to be answered");
      expect(got.outcome === "rejected", `a batch of ${stage.world.tooLargeBytes} bytes is ${got.outcome}`);
      expect(TenureError.is(got.error) && got.error.code === "ENTRY_TOO_LARGE", `rejected with ${String(got.error)}`);
      await stage.commit(leader);
    },
  },
  {
    name: "opening an epoch again changes nothing and tells the head",
    async play(stage) {
      const leader = await stage.lead(stage.a);
      await stage.commit(leader, 3);
      const again = await stage.result(leader.log.open(leader.epoch), "the second open");
      expect(again.outcome === "opened", `opening the same epoch again is ${again.outcome}`);
      expect(again.head.position === 3, `three records are committed, and the open says ${again.head.position}`);
      await stage.commit(leader);
    },
  },
  {
    name: "reading gives at most what was asked for, from where it was asked for",
    async play(stage) {
      const leader = await stage.lead(stage.a);
      const { texts } = await stage.commit(leader, 5);
      const positions = async (from: number, max: number): Promise<string> =>
        (await stage.read(stage.a, from, max)).map(({ position, data }) => `${position} ${textOf(data)}`).join();
      const expected = (...at: number[]): string => at.map((one) => `${one} ${texts[one - 1] ?? ""}`).join();
      expect((await positions(1, 2)) === expected(1, 2), `read(1, 2) gives ${await positions(1, 2)}`);
      expect((await positions(4, 10)) === expected(4, 5), `read(4, 10) gives ${await positions(4, 10)}`);
      expect((await positions(2, 0)) === "", `read(2, 0) gives ${await positions(2, 0)}`);
      expect((await positions(6, 10)) === "", `read(6, 10) gives ${await positions(6, 10)} behind the head`);
      expect((await positions(60, 10)) === "", `read(60, 10) gives ${await positions(60, 10)} far behind the head`);
    },
  },
  {
    name: "what is not kept any more is refused, and what is kept is read",
    async play(stage) {
      const { keptRecordsMin } = stage.world;
      const leader = await stage.lead(stage.a);
      const count = await stage.overfill(leader);
      const got = await stage.outcome(leader.log.read(1, 1), "reading what is long gone");
      expect("outcome" in got, "the first record is kept for ever, or something else was read in its place");
      expect(TenureError.is(got.error) && got.error.code === "LOG_COMPACTED", `refused with ${String(got.error)}`);
      const from = count - keptRecordsMin + 1;
      const kept = await stage.read(stage.a, from, keptRecordsMin);
      expect(kept.length > 0 && kept[0]?.position === from, `record ${from} of ${count} should still be kept`);
    },
  },
];
