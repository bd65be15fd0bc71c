// Beginning, giving up and ending: nothing is left behind that keeps the scope from others.

import { expect } from "../../loops/conformance.ts";
import { type Case, errorCode, type Actor, type Stage } from "./stage.ts";

export const LIFECYCLE_CASES: readonly Case[] = [
  { name: "transitions are told in order, and none is dropped", play: transitionsInOrder },
  { name: "resign lets another go first", play: resignGivesWay },
  { name: "resign is safe twice, and after another leads", play: resignTwice },
  { name: "close is safe twice, and frees what was held", play: closeTwice },
  { name: "close of an elector that has done nothing is safe", play: closeUnused },
  { name: "close ends although the backend can't be reached", needs: ["cut"], play: closeUnreachable },
  { name: "an acquire that is aborted while it waits leaves no stranded hold", play: abortWaiting },
  { name: "an acquire that is aborted while the scope comes free leaves no stranded hold", play: abortAtGrant },
  { name: "an acquire whose signal has aborted already leaves no stranded hold", play: abortBefore },
  { name: "close while waiting rejects the acquire and leaves no stranded hold", play: closeWaiting },
  { name: "after an aborted acquire the same elector can lead", play: againAfterAbort },
  { name: "a disabled elector never leads, and observes", play: disabled },
];

async function waitsBehind(stage: Stage, leader: Actor, waiting: Actor, signal?: AbortSignal) {
  const term = await stage.acquire(leader);
  const outcome = stage.watch(waiting.elector.acquire({ signal }));
  await stage.pass(stage.timing.heartbeatMs / 2);
  expect(outcome.state === "pending", `${waiting.name} does not wait while ${leader.name} leads`);
  return { term, outcome };
}

/** Long before the server would have taken a stranded hold away. */
async function leadsSoon(stage: Stage, actor: Actor, after: string): Promise<void> {
  const term = stage.watch(actor.elector.acquire());
  await stage.soon(() => term.state !== "pending", `${actor.name} to lead after ${after}`);
  await term.promise;
}

async function transitionsInOrder(stage: Stage): Promise<void> {
  const a = await stage.actor("a");
  const epochs: number[] = [];
  for (let term = 0; term < 2; term++) {
    const { epoch } = await stage.result(stage.watch(a.elector.lead((held) => held)), "a to lead and to resign");
    epochs.push(epoch);
  }
  const told = a.transitions
    .map((one) => (one.kind === "campaigning" ? one.kind : `${one.kind} ${one.epoch}`))
    .join(", ");
  const expected = epochs.map((epoch) => `campaigning, leading ${epoch}, ended ${epoch}`).join(", ");
  expect(told === expected, `the transitions were: ${told}`);
  const ends = a.transitions.filter((one) => one.kind === "ended");
  expect(
    ends.every(({ reason, heldMs }) => reason === "resigned" && heldMs >= 0),
    "a term that was resigned ended otherwise",
  );
  const { scope, identity } = a.elector;
  const named = a.transitions.every((one) => one.scope === scope && one.identity === identity);
  expect(named, "a transition has another scope or identity");
}

async function resignGivesWay(stage: Stage): Promise<void> {
  const [a, b] = [await stage.actor("a"), await stage.actor("b")];
  const { term, outcome } = await waitsBehind(stage, a, b);
  await stage.result(stage.watch(term.resign()), "a to resign");
  const again = stage.watch(a.elector.acquire());
  await stage.soon(() => outcome.state !== "pending" || again.state !== "pending", "somebody to lead after a resigned");
  expect(outcome.state === "resolved", "the leader that resigned led again before the one that waited");
  const { epoch } = await outcome.promise;
  expect(epoch > term.epoch, `epoch ${epoch} follows epoch ${term.epoch}`);
  expect(again.state === "pending", "two instances were granted the scope");
}

async function resignTwice(stage: Stage): Promise<void> {
  const [a, b] = [await stage.actor("a"), await stage.actor("b")];
  const { term, outcome } = await waitsBehind(stage, a, b);
  await stage.result(stage.watch(Promise.all([term.resign(), term.resign()])), "a to resign twice");
  const next = await stage.result(outcome, "b to lead");
  await stage.result(stage.watch(term.resign()), "a to resign once more");
  await stage.pass(stage.timing.heartbeatMs);
  expect(b.elector.gate.isLeader && !next.signal.aborted, "a late resign of the old leader ended the new one");
  expect((await stage.result(stage.watch(term.ended), "the term to end")) === "resigned", "the term was not resigned");
}

async function closeTwice(stage: Stage): Promise<void> {
  const [a, b] = [await stage.actor("a"), await stage.actor("b")];
  const term = await stage.acquire(a);
  await stage.result(stage.watch(Promise.all([a.elector.close(), a.elector.close()])), "a to close twice");
  expect(term.signal.aborted, "the elector is closed, and its term's signal has not aborted");
  expect(!a.elector.gate.isLeader, "the elector is closed, and its gate is open");
  await leadsSoon(stage, b, "the leader was closed");
  await stage.powerless(a, term);
  await stage.result(stage.watch(a.elector.close()), "a to close once more");
  const refused = await stage.failure(stage.watch(a.elector.acquire()), "acquire after close to be refused");
  expect(errorCode(refused) === "ELECTOR_CLOSED", `acquire after close was rejected with ${String(refused)}`);
}

async function closeUnused(stage: Stage): Promise<void> {
  const a = await stage.actor("a");
  await stage.result(stage.watch(a.elector.close()), "an unused elector to close");
}

async function closeUnreachable(stage: Stage): Promise<void> {
  const [a, b, c] = [await stage.actor("a"), await stage.actor("b"), await stage.actor("c")];
  const { term, outcome } = await waitsBehind(stage, a, b);
  const next = stage.watch(c.elector.acquire());
  await stage.cut(a);
  await stage.cut(b);
  await stage.result(stage.watch(a.elector.close()), "a leader that is cut off to close");
  await stage.result(stage.watch(b.elector.close()), "a waiting instance that is cut off to close");
  await stage.failure(outcome, "its acquire to be rejected");
  expect(!a.elector.gate.isLeader && term.signal.aborted, "the elector is closed, and its term goes on");
  await stage.result(next, "another to lead once the server has noticed");
  await stage.powerless(a, term);
}

async function abortWaiting(stage: Stage): Promise<void> {
  const [a, b, c] = [await stage.actor("a"), await stage.actor("b"), await stage.actor("c")];
  const stop = new AbortController();
  const { term, outcome } = await waitsBehind(stage, a, b, stop.signal);
  stop.abort(new Error("enough"));
  const error = await stage.failure(outcome, "an aborted acquire to be rejected");
  expect(error === stop.signal.reason, `an aborted acquire was rejected with ${String(error)}, not with the reason`);
  await stage.result(stage.watch(term.resign()), "a to resign");
  await leadsSoon(stage, c, "another gave up waiting");
  expect(!b.elector.gate.isLeader, "the gate of an instance that gave up is open");
}

async function abortAtGrant(stage: Stage): Promise<void> {
  const [a, b, c] = [await stage.actor("a"), await stage.actor("b"), await stage.actor("c")];
  const stop = new AbortController();
  const { term, outcome } = await waitsBehind(stage, a, b, stop.signal);
  const resigned = stage.watch(term.resign());
  stop.abort();
  await stage.until(() => outcome.state !== "pending", "an acquire that was aborted while it was granted to settle");
  // Both are right: it was too late for the abort, or the grant was given back.
  if (outcome.state === "resolved") await stage.result(stage.watch((await outcome.promise).resign()), "b to resign");
  await stage.result(resigned, "a to resign");
  await leadsSoon(stage, c, "another gave up at the moment of its grant");
}

async function abortBefore(stage: Stage): Promise<void> {
  const [a, b] = [await stage.actor("a"), await stage.actor("b")];
  await stage.failure(
    stage.watch(a.elector.acquire({ signal: AbortSignal.abort() })),
    "a dead signal to reject acquire",
  );
  await leadsSoon(stage, b, "another was aborted before it asked");
}

async function closeWaiting(stage: Stage): Promise<void> {
  const [a, b, c] = [await stage.actor("a"), await stage.actor("b"), await stage.actor("c")];
  const { term, outcome } = await waitsBehind(stage, a, b);
  await stage.result(stage.watch(b.elector.close()), "a waiting elector to close");
  const error = await stage.failure(outcome, "the acquire of a closed elector to be rejected");
  expect(errorCode(error) === "ELECTOR_CLOSED", `the acquire of a closed elector was rejected with ${String(error)}`);
  await stage.result(stage.watch(term.resign()), "a to resign");
  await leadsSoon(stage, c, "a waiting elector was closed");
}

async function againAfterAbort(stage: Stage): Promise<void> {
  const [a, b] = [await stage.actor("a"), await stage.actor("b")];
  const stop = new AbortController();
  const { term, outcome } = await waitsBehind(stage, a, b, stop.signal);
  stop.abort();
  await stage.failure(outcome, "an aborted acquire to be rejected");
  const again = stage.watch(b.elector.acquire());
  await stage.result(stage.watch(term.resign()), "a to resign");
  await stage.soon(() => again.state !== "pending", "b to lead after an acquire that it had aborted");
  await again.promise;
}

async function disabled(stage: Stage): Promise<void> {
  const [a, b] = [await stage.actor("a", { enabled: false }), await stage.actor("b")];
  const stop = new AbortController();
  const waiting = stage.watch(a.elector.acquire({ signal: stop.signal }));
  await stage.pass(stage.timing.heartbeatMs);
  expect(waiting.state === "pending", "a disabled elector does not wait, although its scope is free");
  const { epoch } = await stage.acquire(b);
  const leader = await stage.result(stage.watch(a.elector.leader()), "a disabled elector to hear who leads");
  expect(leader?.epoch === epoch, "a disabled elector does not hear who leads");
  stop.abort();
  await stage.failure(waiting, "the acquire of a disabled elector to be rejected after its abort");
}
