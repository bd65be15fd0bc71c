// Who leads: exactly one, with an epoch that nobody had before, and whoever led before can't act.

import { expect } from "../../loops/conformance.ts";
import { type Case, type Actor, countAborts, type Stage } from "./stage.ts";

export const ELECTION_CASES: readonly Case[] = [
  { name: "of several that acquire at once exactly one leads", play: exactlyOne },
  { name: "there is one leader for each epoch, as the resource sees it", play: oneLeaderPerEpoch },
  { name: "epochs grow from term to term, whoever leads", play: epochsGrow },
  {
    name: "a leader that resigned can't act: its gate is closed and the resource refuses it",
    play: resignedIsPowerless,
  },
  { name: "the backend names the leader, and nobody when there is none", play: namesLeader },
  { name: "a leader goes on leading while its heartbeats are answered", play: leadsOn },
  { name: "scopes do not disturb each other", play: scopesApart },
  {
    name: "a killed leader is followed, at once where that is promised, and its epoch is refused",
    needs: ["kill"],
    play: killed,
  },
  { name: "a waiting instance that is killed never leads", needs: ["kill"], play: killedWaiter },
  {
    name: "a leader that is cut off closes its gate before another leads, and the resource refuses it",
    needs: ["cut"],
    play: cutOff,
  },
  {
    name: "a leader frozen longer than the server timeout can't act when it thaws",
    needs: ["freeze"],
    play: frozenLong,
  },
  {
    name: "the gate closes and opens again inside a term, with the same epoch and without an abort",
    needs: ["freeze"],
    play: frozenShort,
  },
];

async function exactlyOne(stage: Stage): Promise<void> {
  const actors = await Promise.all(["a", "b", "c"].map((name) => stage.actor(name)));
  const campaigns = actors.map((actor) => stage.watch(actor.elector.acquire()));
  const won = (): number => campaigns.filter(({ state }) => state === "resolved").length;
  await stage.until(() => won() > 0, "one of three to lead");
  await stage.pass(stage.timing.heartbeatMs * 3);
  expect(won() === 1, `${won()} of three instances were granted the same scope at once`);
  const open = actors.filter(({ elector }) => elector.gate.isLeader).length;
  expect(open === 1, `the gates of ${open} instances are open, and one leads`);
  const failed = campaigns.find(({ state }) => state === "rejected");
  expect(failed === undefined, `an acquire that should wait was rejected: ${String(failed?.error)}`);
}

async function oneLeaderPerEpoch(stage: Stage): Promise<void> {
  const TERMS_EACH = 2;
  const ledger: { epoch: number; name: string }[] = [];
  let running = 0;
  const campaign = async (actor: Actor): Promise<void> => {
    for (let term = 0; term < TERMS_EACH; term++) {
      await actor.elector.lead(async ({ epoch }) => {
        running++;
        expect(running === 1, `${running} instances work at once, the last one with epoch ${epoch}`);
        await stage.write(epoch, actor.name);
        ledger.push({ epoch, name: actor.name });
        running--;
      });
    }
  };
  const actors = await Promise.all(["a", "b", "c"].map((name) => stage.actor(name)));
  const all = stage.watch(Promise.all(actors.map((actor) => campaign(actor))));
  await stage.result(all, "three instances to lead twice each", stage.takeoverMs * 3);
  const epochs = ledger.map(({ epoch }) => epoch);
  const text = ledger.map(({ epoch, name }) => `${name}:${epoch}`).join(" ");
  expect(new Set(epochs).size === epochs.length, `the resource saw one epoch from two terms: ${text}`);
  expect(
    epochs.every((epoch, i) => i === 0 || epoch > (epochs[i - 1] ?? 0)),
    `the resource accepted epochs out of order: ${text}`,
  );
}

async function epochsGrow(stage: Stage): Promise<void> {
  const [a, b] = [await stage.actor("a"), await stage.actor("b")];
  let last = 0;
  for (const actor of [a, a, b, a]) {
    const term = await stage.acquire(actor);
    const { epoch } = term;
    expect(Number.isSafeInteger(epoch) && epoch > last, `epoch ${epoch} of ${actor.name} came after epoch ${last}`);
    expect(actor.elector.gate.requireLeader() === epoch, `the gate and the term of ${actor.name} have other epochs`);
    last = epoch;
    await stage.result(stage.watch(term.resign()), `${actor.name} to resign`);
  }
}

async function resignedIsPowerless(stage: Stage): Promise<void> {
  const [a, b] = [await stage.actor("a"), await stage.actor("b")];
  const first = await stage.acquire(a);
  await stage.write(first.epoch, "a, leading");
  await stage.result(stage.watch(first.resign()), "a to resign");
  expect(first.signal.aborted, "a resigned, and its term's signal has not aborted");
  const second = await stage.acquire(b);
  await stage.powerless(a, first);
  await stage.write(second.epoch, "b, leading");
  await stage.refused(second.epoch + 1, "an epoch that nobody was granted");
}

async function namesLeader(stage: Stage): Promise<void> {
  const [a, b] = [await stage.actor("a", { metadata: { url: "http://a.test" } }), await stage.actor("b")];
  const ask = (actor: Actor): Promise<unknown> =>
    stage.result(stage.watch(actor.elector.leader()), `${actor.name} to hear who leads`);
  expect((await ask(b)) === null, "nobody has led yet, and leader() is not null");
  const term = await stage.acquire(a);
  for (const actor of [a, b]) {
    const leader = await stage.result(stage.watch(actor.elector.leader()), `${actor.name} to hear who leads`);
    expect(leader?.identity === a.elector.identity, `${actor.name} hears that ${leader?.identity ?? "nobody"} leads`);
    expect(leader.epoch === term.epoch, `${actor.name} hears of epoch ${leader.epoch} instead of ${term.epoch}`);
    expect(leader.metadata["url"] === "http://a.test", `${actor.name} does not hear the leader's metadata`);
  }
  await stage.result(stage.watch(term.resign()), "a to resign");
  expect((await ask(b)) === null, "the leader resigned, and leader() is not null");
}

async function leadsOn(stage: Stage): Promise<void> {
  const [a, b] = [await stage.actor("a"), await stage.actor("b")];
  const term = await stage.acquire(a);
  const waiting = stage.watch(b.elector.acquire());
  const { serverTimeoutMs, heartbeatMs } = stage.timing;
  // In steps, so that a gate that is closed in between is seen.
  for (let passedMs = 0; passedMs < serverTimeoutMs * 1.5; passedMs += heartbeatMs) {
    await stage.pass(heartbeatMs);
    expect(a.elector.gate.isLeader, `the gate of an undisturbed leader is closed after ${passedMs} ms`);
    expect(waiting.state === "pending", "a second instance was granted a scope that is held");
  }
  expect(!term.signal.aborted, "the term of an undisturbed leader ended");
  await stage.write(term.epoch, "a, still leading");
}

async function scopesApart(stage: Stage): Promise<void> {
  const here = await stage.actor("a");
  const there = await stage.actor("b", { scope: `${stage.scope}-other` });
  const term = await stage.acquire(here);
  await stage.acquire(there, "b to lead another scope");
  expect(here.elector.gate.isLeader && !term.signal.aborted, "a leader of one scope ended the leader of another");
}

async function killed(stage: Stage): Promise<void> {
  const [a, b] = [await stage.actor("a"), await stage.actor("b")];
  const first = await stage.acquire(a);
  const second = stage.watch(b.elector.acquire());
  await stage.pass(stage.timing.heartbeatMs / 2);
  await stage.kill(a);
  if (stage.killFreesAtOnce) await stage.soon(() => second.state !== "pending", "b to follow a killed leader at once");
  const term = await stage.result(second, "b to follow a killed leader");
  expect(term.epoch > first.epoch, `epoch ${term.epoch} follows epoch ${first.epoch}`);
  await stage.refused(first.epoch, "a killed leader");
  await stage.write(term.epoch, "b, leading");
}

async function killedWaiter(stage: Stage): Promise<void> {
  const [a, b, c] = [await stage.actor("a"), await stage.actor("b"), await stage.actor("c")];
  const first = await stage.acquire(a);
  const dead = stage.watch(b.elector.acquire());
  await stage.pass(stage.timing.heartbeatMs / 2);
  const next = stage.watch(c.elector.acquire());
  await stage.pass(stage.timing.heartbeatMs / 2);
  await stage.kill(b);
  await stage.result(stage.watch(first.resign()), "a to resign");
  await stage.soon(() => next.state !== "pending", "c to lead, past a waiting instance that was killed");
  await next.promise;
  expect(dead.state !== "resolved", "an instance that was killed while it waited was told that it leads");
}

async function cutOff(stage: Stage): Promise<void> {
  const [a, b] = [await stage.actor("a"), await stage.actor("b")];
  const first = await stage.acquire(a);
  let openAtTakeover: boolean | undefined;
  const takeover = b.elector.acquire().then((term) => {
    openAtTakeover = a.elector.gate.isLeader;
    return term;
  });
  const second = stage.watch(takeover);
  await stage.pass(stage.timing.heartbeatMs / 2);
  await stage.cut(a);
  const { epoch } = await stage.result(second, "b to follow a leader that is cut off");
  expect(openAtTakeover === false, "the gate of a leader that was cut off was open when another began to lead");
  expect(epoch > first.epoch, `epoch ${epoch} follows epoch ${first.epoch}`);
  await stage.powerless(a, first);
  await stage.write(epoch, "b, leading");
  await stage.mend(a);
  await stage.until(() => first.signal.aborted, "the signal of a leader that was cut off to abort");
  await stage.powerless(a, first);
  expect(b.elector.gate.isLeader, "the return of the old leader ended the new one");
}

async function frozenLong(stage: Stage): Promise<void> {
  const [a, b] = [await stage.actor("a"), await stage.actor("b")];
  const first = await stage.acquire(a);
  const aborts = countAborts(first.signal);
  const second = stage.watch(b.elector.acquire());
  await stage.pass(stage.timing.heartbeatMs / 2);
  await stage.freeze(a);
  const { epoch } = await stage.result(second, "b to follow a frozen leader");
  await stage.powerless(a, first);
  await stage.mend(a);
  await stage.powerless(a, first);
  await stage.until(() => first.signal.aborted, "the signal of a leader that was frozen to abort");
  const reason = await stage.result(stage.watch(first.ended), "the term of a leader that was frozen to end");
  expect(reason !== "resigned" && reason !== "asked", `a term that was lost ended as "${reason}"`);
  await stage.pass(stage.timing.heartbeatMs * 2);
  expect(aborts.count === 1, `the signal aborted ${aborts.count} times`);
  await stage.write(epoch, "b, leading");
}

async function frozenShort(stage: Stage): Promise<void> {
  const a = await stage.actor("a");
  const term = await stage.acquire(a);
  const { serverTimeoutMs, marginMs } = stage.timing;
  await stage.freeze(a);
  // Past the deadline as counted from any heartbeat before the freeze, and before the server's timeout.
  await stage.pass(serverTimeoutMs - marginMs / 2);
  expect(!a.elector.gate.isLeader, "the gate is open although no heartbeat was answered for the trust window");
  expect(!term.signal.aborted, "the signal aborted although the scope is still held");
  await stage.mend(a);
  await stage.until(() => a.elector.gate.isLeader, "the gate to open again after a short freeze");
  expect(a.elector.gate.requireLeader() === term.epoch, "the gate opened again with another epoch");
  expect(!term.signal.aborted, "the signal aborted although the term goes on");
  await stage.write(term.epoch, "a, leading again");
  const kinds = a.transitions.map(({ kind }) => kind).join(" ");
  expect(kinds === "campaigning leading suspended resumed", `the transitions were: ${kinds}`);
}
