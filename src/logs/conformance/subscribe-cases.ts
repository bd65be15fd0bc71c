// Who subscribes sees every committed record once, in order, without gaps (trap 67).

import { expect } from "../../loops/conformance.ts";
import type { Case } from "./stage.ts";
import type { LogRecord } from "../../ports/log.ts";

export const SUBSCRIBE_CASES: readonly Case[] = [
  {
    name: "trap 67: a subscriber sees each record once, in order, without gaps, on every node",
    async play(stage) {
      const told = stage.world.nodes.map((node) => stage.subscribe(node, 1));
      const first = await stage.lead(stage.a);
      const texts = [...(await stage.commit(first, 3)).texts, ...(await stage.commit(first)).texts];
      const second = await stage.lead(stage.b);
      texts.push(...(await stage.commit(second, 2)).texts);
      for (const node of stage.world.nodes) await stage.reaches(node, 6);
      for (const one of told) stage.toldExactly(one, 1, texts);
    },
  },
  {
    name: "who subscribes late gets what was there, then what comes",
    async play(stage) {
      const leader = await stage.lead(stage.a);
      const texts = [...(await stage.commit(leader, 4)).texts];
      const told = stage.subscribe(stage.a, 1);
      await stage.until(() => told.records.length >= 4, "the records that were there");
      texts.push(...(await stage.commit(leader, 2)).texts);
      await stage.until(() => told.records.length >= 6, "the records that came");
      stage.toldExactly(told, 1, texts);
    },
  },
  {
    name: "trap 67: who resumes from where it stopped misses nothing and gets nothing twice",
    async play(stage) {
      const leader = await stage.lead(stage.a);
      const first = stage.subscribe(stage.a, 1);
      const before = await stage.commit(leader, 3);
      await stage.until(() => first.records.length >= 3, "the first three");
      first.stop();
      const between = await stage.commit(leader, 3);
      const second = stage.subscribe(stage.a, 4);
      const behind = await stage.commit(leader, 1);
      await stage.until(() => second.records.length >= 4, "the next four");
      stage.toldExactly(first, 1, before.texts);
      stage.toldExactly(second, 4, [...between.texts, ...behind.texts]);
    },
  },
  {
    name: "who subscribes to what is still to come is not told of what was before",
    async play(stage) {
      const leader = await stage.lead(stage.a);
      await stage.commit(leader, 2);
      const told = stage.subscribe(stage.a, 5);
      await stage.commit(leader, 2);
      expect(told.records.length === 0, `subscribed from 5, and was told of ${told.records[0]?.position ?? 0}`);
      const { texts } = await stage.commit(leader, 2);
      await stage.until(() => told.records.length >= 2, "the records from 5 on");
      stage.toldExactly(told, 5, texts);
    },
  },
  {
    name: "who leaves inside of a call is not called again",
    async play(stage) {
      const leader = await stage.lead(stage.a);
      const positions: number[] = [];
      let stop: (() => void) | null = null;
      stop = leader.log.subscribe(
        1,
        ({ position }) => {
          positions.push(position);
          if (position === 2) stop?.();
        },
        () => undefined,
      );
      const other = stage.subscribe(stage.a, 1);
      await stage.commit(leader, 4);
      await stage.commit(leader);
      await stage.until(() => other.records.length === 5, "the other to be told of all five");
      expect(String(positions) === "1,2", `left at 2, and was told of ${String(positions)}`);
    },
  },
  {
    name: "who subscribes inside of a call neither misses a record nor gets one twice",
    async play(stage) {
      const leader = await stage.lead(stage.a);
      const inner: LogRecord[] = [];
      let stop: (() => void) | null = null;
      leader.log.subscribe(
        1,
        ({ position }) => {
          if (position !== 2) return;
          stop = leader.log.subscribe(
            1,
            (record) => inner.push(record),
            () => undefined,
          );
        },
        () => undefined,
      );
      await stage.commit(leader, 3);
      await stage.commit(leader, 1);
      await stage.until(() => inner.length >= 4, "the inner subscriber to be told of all four");
      const positions = inner.map(({ position }) => position);
      expect(String(positions) === "1,2,3,4", `the inner subscriber was told of ${String(positions)}`);
      expect(stop !== null, "nobody subscribed");
    },
  },
  {
    name: "who asks for what is not kept any more is told so once, and nothing else",
    async play(stage) {
      const leader = await stage.lead(stage.a);
      const count = await stage.overfill(leader);
      const told = stage.subscribe(stage.a, 1);
      await stage.until(() => told.compacted > 0, "to be told that the first records are gone");
      const recent = stage.subscribe(stage.a, count);
      await stage.commit(leader);
      await stage.until(() => recent.records.length >= 2, "the last records");
      expect(
        told.compacted === 1 && told.records.length === 0,
        `told ${told.compacted} times, and ${told.records.length} records`,
      );
    },
  },
];
