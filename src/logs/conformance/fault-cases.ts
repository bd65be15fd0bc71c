// Leaders that are cut off or die: what was said of an append must be true in the end, and what is not known is `unknown`.

import { seededRandom } from "../../core/kit/random.ts";
import { expect } from "../../loops/conformance.ts";
import { type Case, type Append, type Leader, type LogStage, said } from "./stage.ts";

const WALKS = 3;
const STEPS = 25;
const MOMENTS = 16;
const MOMENT_MS = 0.2;

export const FAULT_CASES: readonly Case[] = [
  {
    name: "trap 66: a leader that is cut off never says committed of what the others do not have, nor fenced of what they do",
    needs: ["cut"],
    async play(stage) {
      const old = await stage.lead(stage.a);
      await stage.commit(old, 2);
      const before = stage.send(old, 2);
      await stage.cut(stage.a);
      const during = [stage.send(old, 2), stage.send(old, 2)];
      const next = await stage.lead(stage.b);
      await stage.commit(next, 3);
      await stage.mend(stage.a);
      await stage.answered(before, ...during);
      // The ledger compares what was said with what is there.
      await stage.reaches(stage.a, next.end);
    },
  },
  {
    name: "trap 66: whenever a cut overtakes an append, what was said of it is true",
    needs: ["cut"],
    async play(stage) {
      // From before the request has left to after the answer has come.
      for (let moment = 0; moment < MOMENTS; moment++) {
        const old = await stage.lead(moment % 2 === 0 ? stage.a : stage.b);
        const append = stage.send(old, 2);
        await stage.world.advance(moment * MOMENT_MS);
        await stage.cut(old.node);
        await stage.commit(await stage.lead(stage.c));
        await stage.mend(old.node);
        await stage.answered(append);
      }
    },
  },
  {
    name: "after unknown, the head of the next open tells which it was, and it stays so",
    needs: ["cut"],
    async play(stage) {
      const old = await stage.lead(stage.a);
      await stage.commit(old);
      await stage.cut(stage.a);
      const lost = stage.send(old, 3);
      const next = await stage.lead(stage.b);
      await stage.mend(stage.a);
      await stage.answered(lost);
      expect(lost.answer?.outcome !== "committed" || next.head.position === 4, "committed, and the next head lacks it");
      const { texts } = await stage.contents(stage.b, next.head.position);
      const isThere = texts.includes(lost.texts[0]!);
      expect(next.head.position === (isThere ? 4 : 1), `the head of the next open is ${next.head.position}`);
      await stage.commit(next, 2);
      const again = await stage.lead(stage.a);
      await stage.commit(again);
      const later = await stage.contents(stage.a, again.end);
      expect(later.texts.includes(lost.texts[0]!) === isThere, "a later leader sees another fate of the same append");
    },
  },
  {
    name: "a node that was cut off while records went by is told all of them, or that it has missed some",
    needs: ["cut"],
    async play(stage) {
      const leader = await stage.lead(stage.a);
      await stage.commit(leader, 2);
      await stage.reaches(stage.c, 2);
      const told = stage.subscribe(stage.c, 1);
      await stage.cut(stage.c);
      const count = stage.world.forgottenAfterRecords + stage.world.keptRecordsMin;
      for (let sent = 0; sent < count; sent++) await stage.commit(leader);
      await stage.mend(stage.c);
      await stage.reaches(stage.c, leader.end);
      told.records.forEach(({ position }, at) =>
        expect(position === at + 1, `told of ${position} where ${at + 1} was due: a gap or a repetition`),
      );
      expect(
        told.compacted === 1 || told.records.length === leader.end,
        `told of ${told.records.length} of ${leader.end} records, and ${told.compacted} times that some are gone`,
      );
      const resumed = stage.subscribe(stage.c, leader.end + 1);
      const last = await stage.commit(leader, 2);
      await stage.until(() => resumed.records.length >= 2, "the records behind the jump");
      stage.toldExactly(resumed, last.after + 1, last.texts);
    },
  },
  {
    name: "what was committed, and the fence, survive a crash of the leader",
    needs: ["crash"],
    async play(stage) {
      const old = await stage.lead(stage.a);
      await stage.commit(old, 3);
      const underWay = stage.send(old, 2);
      await stage.crash(stage.a);
      const next = await stage.lead(stage.b);
      const { position } = next.head;
      expect(position === 3 || position === 5, `after the crash there are ${position} records, not 3 or 5`);
      expect(underWay.answer === null || position === 5, "an append was answered, and the crash took it back");
      await stage.commit(next, 2);
      await stage.mend(stage.a);
      await stage.reaches(stage.a, next.end);
      const log = stage.world.log(stage.a);
      await stage.until(() => log.head().epoch >= next.epoch, `${stage.a} to hear of epoch ${next.epoch}`);
      const late = stage.send({ ...old, log }, 1, next.end);
      await stage.answered(late);
      stage.refused(late, "its epoch ended with the crash");
    },
  },
  {
    name: "what was committed, and the fence, survive a crash of all nodes at once",
    needs: ["crash"],
    async play(stage) {
      const old = await stage.lead(stage.a);
      const { texts } = await stage.commit(old, 4);
      for (const node of stage.world.nodes) await stage.crash(node);
      for (const node of stage.world.nodes) await stage.mend(node);
      const next = await stage.lead(stage.b);
      expect(next.epoch > old.epoch, `epoch ${old.epoch} was handed out before the crash, and now ${next.epoch}`);
      expect(
        next.head.position === 4,
        `four records were committed, and after the crash there are ${next.head.position}`,
      );
      const contents = await stage.contents(stage.b, 4);
      expect(
        contents.from > 4 || texts.at(-1) === contents.texts.at(-1),
        `the last record is ${contents.texts.at(-1) ?? ""}`,
      );
      await stage.commit(next);
    },
  },
  ...Array.from({ length: WALKS }, (_, at): Case => ({
    name: `whatever happens to leaders, the log is what was promised (walk ${at + 1})`,
    needs: ["cut"],
    play: (stage) => walk(stage, `walk/${at + 1}`),
  })),
];

/** Appends in bursts, while leadership moves, with and without a cut; the ledger tells in the end. */
async function walk(stage: LogStage, seed: string): Promise<void> {
  const random = seededRandom(seed);
  let leader = await stage.lead(stage.a);
  const appends: Append[] = [];
  const deposed: Leader[] = [];
  for (let step = 0; step < STEPS; step++) {
    for (let burst = random.below(6); burst > 0; burst--) appends.push(stage.send(leader, 1 + random.below(3)));
    if (random.chance(0.3)) await stage.world.advance(random.below(20));
    if (deposed.length > 0 && random.chance(0.4)) appends.push(stage.send(random.pick(deposed)));
    if (random.chance(0.6)) continue;
    const isCut = random.chance(0.5);
    if (isCut) await stage.cut(leader.node);
    if (isCut) appends.push(stage.send(leader, 2));
    deposed.push(leader);
    const others = stage.world.nodes.filter((node) => node !== leader.node);
    const next = await stage.lead(random.pick(others));
    await stage.mend(leader.node);
    leader = next;
  }
  await stage.answered(...appends);
  const counts = { committed: 0, fenced: 0, unknown: 0, rejected: 0 };
  for (const { answer } of appends) if (answer !== null) counts[answer.outcome]++;
  const summary = JSON.stringify(counts);
  expect(counts.committed > 0, `a walk in which nothing was committed shows nothing: ${summary}`);
  expect(
    counts.fenced > 0,
    `a walk in which nothing was fenced shows nothing: ${summary}; ${said(appends[0]!.answer)}`,
  );
}
