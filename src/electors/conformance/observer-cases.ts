// What those hear who only look: the present leader, each change, null for nobody.

import { expect } from "../../loops/conformance.ts";
import { type Case, collect, type Stage } from "./stage.ts";

export const OBSERVER_CASES: readonly Case[] = [
  { name: "observers learn the leader with its epoch and metadata, and null when it resigns", play: learnEachChange },
  { name: "an observer that comes later learns the present leader at once", play: learnPresent },
  { name: "an observer ends when its signal aborts, and when its elector is closed", play: end },
  { name: "an observer that never campaigns holds nothing", play: holdsNothing },
  { name: "observers learn of the next leader after a kill", needs: ["kill"], play: learnAfterKill },
  { name: "an observer that was cut off learns what it has missed", needs: ["cut"], play: learnAfterCut },
];

async function learnEachChange(stage: Stage): Promise<void> {
  const a = await stage.actor("a", { metadata: { url: "http://a.test", "zone é": "1" } });
  const b = await stage.actor("b");
  const { seen } = collect(b.elector.observe());
  await stage.until(() => seen.length > 0, "an observer to be told that nobody leads");
  expect(seen[0] === null, "an observer of a scope that nobody leads was told of a leader");
  const term = await stage.acquire(a);
  await stage.soon(() => seen.at(-1) !== null, "an observer to learn the leader");
  const leader = seen.at(-1);
  expect(leader?.identity === a.elector.identity, `the observer was told that ${leader?.identity} leads`);
  expect(leader.epoch === term.epoch, `the observer was told of epoch ${leader.epoch} instead of ${term.epoch}`);
  const text = JSON.stringify(leader.metadata);
  expect(
    leader.metadata["url"] === "http://a.test" && leader.metadata["zone é"] === "1",
    `the metadata came as ${text}`,
  );
  await stage.result(stage.watch(term.resign()), "a to resign");
  await stage.soon(() => seen.at(-1) === null, "an observer to learn that nobody leads");
  const told = seen.map((one) => one?.epoch ?? null);
  expect(
    told.every((epoch, i) => i === 0 || epoch !== told[i - 1]),
    `a leader was told twice in a row: ${told.join(" ")}`,
  );
}

async function learnPresent(stage: Stage): Promise<void> {
  const [a, b] = [await stage.actor("a"), await stage.actor("b")];
  const term = await stage.acquire(a);
  const { seen } = collect(b.elector.observe());
  await stage.soon(() => seen.length > 0, "a late observer to be told who leads");
  expect(seen[0]?.epoch === term.epoch, `a late observer was first told of epoch ${seen[0]?.epoch ?? "null"}`);
}

async function end(stage: Stage): Promise<void> {
  const a = await stage.actor("a");
  const stop = new AbortController();
  const aborted = collect(a.elector.observe({ signal: stop.signal }));
  const closed = collect(a.elector.observe());
  await stage.until(() => aborted.seen.length > 0 && closed.seen.length > 0, "two observers to be told");
  stop.abort();
  await stage.result(stage.watch(aborted.done), "an observer to end after its signal");
  await stage.result(stage.watch(a.elector.close()), "the elector to close");
  await stage.result(stage.watch(closed.done), "an observer to end with its elector");
}

async function holdsNothing(stage: Stage): Promise<void> {
  const [a, b] = [await stage.actor("a"), await stage.actor("b")];
  const { seen } = collect(a.elector.observe());
  await stage.until(() => seen.length > 0, "an observer to be told that nobody leads");
  const term = stage.watch(b.elector.acquire());
  await stage.soon(() => term.state !== "pending", "b to lead while another only observes");
  await term.promise;
  expect(!a.elector.gate.isLeader, "the gate of an observer is open");
}

async function learnAfterKill(stage: Stage): Promise<void> {
  const [a, b, c] = [await stage.actor("a"), await stage.actor("b"), await stage.actor("c")];
  await stage.acquire(a);
  const { seen } = collect(c.elector.observe());
  const next = stage.watch(b.elector.acquire());
  await stage.until(() => seen.at(-1)?.identity === a.elector.identity, "the observer to learn the first leader");
  await stage.kill(a);
  const { epoch } = await stage.result(next, "b to follow a killed leader");
  await stage.soon(() => seen.at(-1)?.epoch === epoch, "the observer to learn the next leader");
}

async function learnAfterCut(stage: Stage): Promise<void> {
  const [a, b] = [await stage.actor("a"), await stage.actor("b")];
  const { seen } = collect(b.elector.observe());
  await stage.until(() => seen.length > 0, "an observer to be told that nobody leads");
  await stage.cut(b);
  const { epoch } = await stage.acquire(a);
  await stage.mend(b);
  await stage.until(() => seen.at(-1)?.epoch === epoch, "the observer to learn what happened while it was cut off");
}
