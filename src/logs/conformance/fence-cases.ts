// One epoch at a time: what a higher one does to those below.

import { expect } from "../../loops/conformance.ts";
import type { Case } from "./stage.ts";

const UNDER_WAY = 20;

export const FENCE_CASES: readonly Case[] = [
  {
    name: "opening tells a head with everything that was committed before, whoever appended it",
    async play(stage) {
      const first = await stage.lead(stage.a);
      await stage.commit(first, 3);
      const second = await stage.lead(stage.b);
      expect(second.epoch > first.epoch, `epoch ${second.epoch} does not follow ${first.epoch}`);
      expect(
        second.head.position === 3,
        `three records were committed, and the next leader starts at ${second.head.position}`,
      );
      await stage.commit(second, 2);
      const third = await stage.lead(stage.a);
      expect(
        third.head.position === 5,
        `five records were committed, and the next leader starts at ${third.head.position}`,
      );
    },
  },
  {
    name: "once a higher epoch is opened the lower one appends nothing, for ever",
    async play(stage) {
      const old = await stage.lead(stage.a);
      await stage.commit(old);
      const next = await stage.lead(stage.b);
      await stage.commit(next);
      await stage.reaches(stage.a, 2);
      for (const after of [1, 2]) {
        await stage.fenced(stage.send(old, 1, after));
      }
      // Its node leads again, in a new epoch: the old one stays over.
      const again = await stage.lead(stage.a);
      await stage.fenced(stage.send({ ...old, log: again.log }, 1, again.end));
      await stage.commit(again);
    },
  },
  {
    name: "a lower epoch can't be opened once a higher one is",
    async play(stage) {
      const old = await stage.lead(stage.a);
      const next = await stage.lead(stage.b);
      await stage.until(() => old.log.head().epoch >= next.epoch, `${stage.a} to hear of epoch ${next.epoch}`);
      const opened = await stage.outcome(old.log.open(old.epoch), "the lower open to be answered");
      expect(
        opened.outcome === "fenced",
        `epoch ${old.epoch} is over since ${next.epoch}, and its open is ${opened.outcome}`,
      );
      expect(opened.epoch >= next.epoch, `it was fenced by epoch ${opened.epoch}, not by ${next.epoch}`);
      expect(next.log.head().epoch === next.epoch, `a refused open changed the fence to ${next.log.head().epoch}`);
      await stage.commit(next);
    },
  },
  {
    name: "an append before its epoch was opened writes nothing",
    async play(stage) {
      const old = await stage.lead(stage.a);
      await stage.commit(old);
      const epoch = await stage.world.lead(stage.b);
      const log = stage.world.log(stage.b);
      const early = stage.send({ node: stage.b, epoch, log, head: log.head(), end: 1 });
      await stage.answered(early);
      stage.refused(early, "the epoch was not opened");
      const opened = await stage.result(log.open(epoch), "the open");
      expect(opened.outcome === "opened", `the open behind it is ${opened.outcome}`);
      expect(opened.head.position === 1, `one record was committed, and the head is ${opened.head.position}`);
    },
  },
  {
    name: "appends under way when a higher epoch is opened are in the log, or were not called committed",
    async play(stage) {
      const old = await stage.lead(stage.a);
      await stage.commit(old);
      const underWay = Array.from({ length: UNDER_WAY }, () => stage.send(old));
      const next = await stage.lead(stage.b);
      // Whatever got in did so before the epoch was opened: the head that `open` told is where the next one goes.
      await stage.commit(next, 2);
      await stage.answered(...underWay);
      await stage.fenced(stage.send(old));
    },
  },
  {
    name: "leaders take turns, and each record is of the epoch that appended it",
    async play(stage) {
      const epochs: number[] = [];
      for (const node of [stage.a, stage.b, stage.c, stage.a]) {
        const leader = await stage.lead(node);
        await stage.commit(leader, 2);
        epochs.push(leader.epoch, leader.epoch);
      }
      const records = await stage.read(stage.a, 1, 100);
      const told = records.map(({ epoch }) => epoch);
      expect(String(told) === String(epochs), `the records' epochs are ${String(told)}, not ${String(epochs)}`);
    },
  },
];
