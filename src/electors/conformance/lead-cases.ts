// The meaning of `lead`, one case for each of its sentences. Terms are lost by cutting the leader off, because it must
// live on to show what it does then.

import { TenureError } from "../../core/kit/errors.ts";
import type { Elector, Term } from "../../ports/elector.ts";
import { expect } from "../../loops/conformance.ts";
import { type Case, type Actor, countAborts, errorCode, type Stage } from "./stage.ts";

export const LEAD_CASES: readonly Case[] = [
  { name: "lead: work returns while its term holds: resign, resolve", play: returns },
  { name: "lead: work throws: resign, reject", play: throws },
  { name: 'lead: work throws what a retry may repair, with onError "retry": again, in a higher epoch', play: retries },
  {
    name: "lead: the term ends first: the signal aborts once, the outcome is dropped, and it campaigns again",
    needs: ["cut"],
    play: endsFirst,
  },
  {
    name: "lead: an error that work throws after its term has ended is dropped",
    needs: ["cut"],
    play: lateErrorDropped,
  },
  { name: 'lead: onLost "throw" rejects when the term is lost', needs: ["cut"], play: onLostThrow },
  { name: "lead: no new campaign before the previous work has settled", needs: ["cut"], play: neverTwo },
  { name: "lead: work that outlives its term by drainMs rejects with TERM_OVERRUN", needs: ["cut"], play: overrun },
  { name: "lead: after it has returned another goes first", play: anotherGoesFirst },
  { name: "lead: an abort while it waits rejects and leaves no stranded hold", play: abortWaiting },
  { name: "lead: an abort while it leads aborts the term's signal once, drains, and lets go", play: abortLeading },
  { name: "lead: close while it leads winds up as an abort does", play: closeLeading },
];

async function returns(stage: Stage): Promise<void> {
  const [a, b] = [await stage.actor("a"), await stage.actor("b")];
  const seen: Term[] = [];
  const led = stage.watch(
    a.elector.lead(async (term) => {
      seen.push(term);
      expect(term.check() === term.epoch, "the gate is closed at the start of work");
      expect(!term.signal.aborted, "the signal has aborted at the start of work");
      await stage.write(term.epoch, "a, at work");
      return { answer: 42 };
    }),
  );
  const value = await stage.result(led, "lead to resolve");
  expect(value.answer === 42, "lead did not resolve to what work returned");
  expect(seen.length === 1, `work ran ${seen.length} times`);
  await resignedAfter(stage, a, b, seen[0] as Term);
}

async function throws(stage: Stage): Promise<void> {
  const [a, b] = [await stage.actor("a"), await stage.actor("b")];
  const failure = new Error("work failed");
  let seen: Term | undefined;
  const led = stage.watch(
    a.elector.lead((term) => {
      seen = term;
      throw failure;
    }),
  );
  const error = await stage.failure(led, "lead to reject");
  expect(error === failure, `lead rejected with ${String(error)} instead of what work threw`);
  await resignedAfter(stage, a, b, seen as unknown as Term);
}

async function retries(stage: Stage): Promise<void> {
  const [a, b] = [await stage.actor("a"), await stage.actor("b")];
  const seen: { readonly term: Term; readonly lastError: unknown }[] = [];
  const failure = new TenureError("OUTCOME_UNKNOWN", "work failed");
  const led = stage.watch(
    a.elector.lead(
      async (term, lastError) => {
        seen.push({ term, lastError });
        if (seen.length === 1) throw failure;
        await stage.write(term.epoch, "a, in its second term");
        return "of the second term";
      },
      { onError: "retry" },
    ),
  );
  const value = await stage.result(led, "lead to resolve in a second term");
  expect(value === "of the second term", `lead resolved to ${value}`);
  const [first, second] = seen;
  expect(first !== undefined && second !== undefined && seen.length === 2, `work ran ${seen.length} times`);
  expect(first.lastError === undefined, "the first work was given an error");
  expect(
    second.lastError === failure,
    `the second work was given ${String(second.lastError)} instead of what it threw`,
  );
  expect(second.term.epoch > first.term.epoch, `epoch ${second.term.epoch} follows epoch ${first.term.epoch}`);
  await stage.refused(first.term.epoch, "the first term");
  await resignedAfter(stage, a, b, second.term);
}

async function resignedAfter(stage: Stage, actor: Actor, next: Actor, term: Term): Promise<void> {
  expect(term.signal.aborted, "the term is over, and its signal has not aborted");
  expect(!actor.elector.gate.isLeader, "work is done, and the gate is open");
  expect((await stage.result(stage.watch(term.ended), "the term to end")) === "resigned", "the term was not resigned");
  const following = stage.watch(next.elector.acquire());
  await stage.soon(() => following.state !== "pending", "another to lead after work is done");
  await following.promise;
  await stage.powerless(actor, term);
}

/** Campaigns, is cut off in its first term, and is healed once that term has ended. */
async function loseFirstTerm(stage: Stage, actor: Actor, terms: readonly Term[]): Promise<Term> {
  await stage.until(() => terms.length > 0, "work to start");
  const [first] = terms as [Term];
  await stage.cut(actor);
  await stage.until(() => first.signal.aborted, "the signal to abort after the leader was cut off");
  const reason = await stage.result(stage.watch(first.ended), "the term to end");
  expect(reason !== "resigned", "a term that was lost says that it was resigned");
  await stage.mend(actor);
  return first;
}

async function endsFirst(stage: Stage): Promise<void> {
  const a = await stage.actor("a");
  const terms: Term[] = [];
  const aborts: { readonly count: number }[] = [];
  const led = stage.watch(
    a.elector.lead((term) => {
      terms.push(term);
      aborts.push(countAborts(term.signal));
      if (terms.length > 1) return "of the second term";
      // Settles inside the abort itself, without a turn in between: the narrowest race with the end of the term.
      return aborted<string>(term.signal, (resolve) => resolve("of the first term"));
    }),
  );
  const first = await loseFirstTerm(stage, a, terms);
  const value = await stage.result(led, "lead to resolve in a second term");
  expect(value === "of the second term", `lead resolved to what work returned after its term had ended: ${value}`);
  const [, second] = terms;
  expect(terms.length === 2 && second !== undefined, `work ran ${terms.length} times`);
  expect(second.epoch > first.epoch, `epoch ${second.epoch} follows epoch ${first.epoch}`);
  await stage.pass(stage.timing.heartbeatMs);
  for (const { count } of aborts) expect(count === 1, `a term's signal aborted ${count} times`);
  await stage.refused(first.epoch, "the first term");
}

async function lateErrorDropped(stage: Stage): Promise<void> {
  const a = await stage.actor("a");
  const terms: Term[] = [];
  const led = stage.watch(
    a.elector.lead((term) => {
      terms.push(term);
      if (terms.length > 1) return "of the second term";
      return aborted<string>(term.signal, (_resolve, reject) => reject(new Error("of the first term")));
    }),
  );
  await loseFirstTerm(stage, a, terms);
  const value = await stage.result(led, "lead to resolve in a second term");
  expect(value === "of the second term", `lead resolved to ${value}`);
}

async function onLostThrow(stage: Stage): Promise<void> {
  const a = await stage.actor("a");
  const terms: Term[] = [];
  const led = stage.watch(
    a.elector.lead(
      (term) => {
        terms.push(term);
        return aborted(term.signal, (resolve) => resolve("dropped"));
      },
      { onLost: "throw" },
    ),
  );
  await loseFirstTerm(stage, a, terms);
  const error = await stage.failure(led, "lead to reject when its term is lost");
  expect(errorCode(error) === "NOT_LEADER", `lead rejected with ${String(error)} instead of NOT_LEADER`);
  await stage.pass(stage.timing.heartbeatMs * 2);
  expect(terms.length === 1, `work ran ${terms.length} times`);
}

async function neverTwo(stage: Stage): Promise<void> {
  const [a, b] = [await stage.actor("a"), await stage.actor("b")];
  const terms: Term[] = [];
  const settle = Promise.withResolvers<void>();
  const drainMs = stage.timing.serverTimeoutMs * 20;
  let running = 0;
  const work = async (term: Term): Promise<number> => {
    terms.push(term);
    running++;
    expect(running === 1, `${running} works run at once in one process`);
    if (terms.length === 1) await settle.promise;
    running--;
    return terms.length;
  };
  const led = stage.watch(a.elector.lead(work, { drainMs }));
  await loseFirstTerm(stage, a, terms);
  // The scope is free for others meanwhile, and this instance must not ask for it.
  const { acquireAttemptsTotal } = a.elector.stats();
  const other = await stage.acquire(b);
  await stage.result(stage.watch(other.resign()), "b to resign");
  await stage.pass(stage.timing.serverTimeoutMs);
  const { acquireAttemptsTotal: after } = a.elector.stats();
  expect(terms.length === 1, "work was started again before the previous work had settled");
  expect(after === acquireAttemptsTotal, "the elector campaigned before the previous work had settled");
  settle.resolve();
  const value = await stage.result(led, "lead to resolve after the previous work has settled");
  expect(value === 2, `work ran ${String(value)} times`);
}

async function overrun(stage: Stage): Promise<void> {
  const a = await stage.actor("a");
  const terms: Term[] = [];
  const settle = Promise.withResolvers<void>();
  const drainMs = stage.timing.heartbeatMs;
  const stuck = (term: Term): Promise<void> => {
    terms.push(term);
    return settle.promise;
  };
  const led = stage.watch(a.elector.lead(stuck, { drainMs }));
  await loseFirstTerm(stage, a, terms);
  const error = await stage.failure(led, "lead to reject after drainMs");
  expect(errorCode(error) === "TERM_OVERRUN", `lead rejected with ${String(error)} instead of TERM_OVERRUN`);
  const refused = await stage.failure(stage.watch(a.elector.lead(() => "second")), "lead to be refused meanwhile");
  expect(errorCode(refused) === "ELECTOR_BUSY", `a second lead was rejected with ${String(refused)}`);
  settle.resolve();
  await stage.pass(0);
  const again = stage.watch(a.elector.lead(() => "third"));
  expect((await stage.result(again, "lead once the work has settled")) === "third", "lead did not run the third work");
}

async function anotherGoesFirst(stage: Stage): Promise<void> {
  const [a, b] = [await stage.actor("a"), await stage.actor("b")];
  const order: string[] = [];
  const finish = Promise.withResolvers<void>();
  const started = stage.watch(
    a.elector.lead(async () => {
      order.push("a");
      await finish.promise;
    }),
  );
  await stage.until(() => order.length === 1, "a to lead");
  const next = stage.watch(b.elector.lead(() => order.push("b")));
  await stage.pass(stage.timing.heartbeatMs / 2);
  finish.resolve();
  await stage.result(started, "a to finish");
  const again = stage.watch(a.elector.lead(() => order.push("a")));
  await stage.result(next, "b to lead");
  await stage.result(again, "a to lead again");
  expect(order.join(" ") === "a b a", `the order was ${order.join(" ")}`);
}

async function abortWaiting(stage: Stage): Promise<void> {
  const [a, b, c] = [await stage.actor("a"), await stage.actor("b"), await stage.actor("c")];
  const term = await stage.acquire(a);
  const stop = new AbortController();
  let ran = false;
  const led = stage.watch(b.elector.lead(() => (ran = true), { signal: stop.signal }));
  await stage.pass(stage.timing.heartbeatMs / 2);
  stop.abort(new Error("enough"));
  const error = await stage.failure(led, "a waiting lead to reject after the abort");
  expect(error === stop.signal.reason, `lead rejected with ${String(error)} instead of the abort's reason`);
  await stage.result(stage.watch(term.resign()), "a to resign");
  const next = stage.watch(c.elector.acquire());
  await stage.soon(() => next.state !== "pending", "c to lead after another gave up");
  await next.promise;
  expect(!ran, "work ran after its lead had been aborted");
}

async function abortLeading(stage: Stage): Promise<void> {
  const stop = new AbortController();
  const reason = new Error("shutting down");
  await windsUp(
    stage,
    stop.signal,
    () => stop.abort(reason),
    (error) => error === reason,
  );
}

async function closeLeading(stage: Stage): Promise<void> {
  const close = (elector: Elector): void => void stage.watch(elector.close());
  await windsUp(stage, undefined, close, (error) => errorCode(error) === "ELECTOR_CLOSED");
}

async function windsUp(
  stage: Stage,
  signal: AbortSignal | undefined,
  stop: (elector: Elector) => void,
  expected: (error: unknown) => boolean,
): Promise<void> {
  const [a, b] = [await stage.actor("a"), await stage.actor("b")];
  const terms: Term[] = [];
  const drain = Promise.withResolvers<void>();
  const work = async (term: Term): Promise<void> => {
    terms.push(term);
    await aborted(term.signal, (resolve) => resolve(undefined));
    // What is under way may still be written: the scope is held until work has settled.
    expect(term.check() === term.epoch, "the gate closed while work was winding up");
    await stage.write(term.epoch, "a, winding up");
    await drain.promise;
  };
  const led = stage.watch(a.elector.lead(work, { signal }));
  await stage.until(() => terms.length > 0, "work to start");
  const [term] = terms as [Term];
  const aborts = countAborts(term.signal);
  const next = stage.watch(b.elector.acquire());
  await stage.pass(stage.timing.heartbeatMs / 2);
  stop(a.elector);
  await stage.pass(stage.timing.heartbeatMs / 2);
  expect(next.state === "pending", "the scope was let go while work was still winding up");
  expect(led.state === "pending", "lead settled while work was still winding up");
  drain.resolve();
  const error = await stage.failure(led, "lead to reject after its work has wound up");
  expect(expected(error), `lead rejected with ${String(error)}`);
  await stage.soon(() => next.state !== "pending", "another to lead after work has wound up");
  await next.promise;
  expect(aborts.count === 1, `the signal aborted ${aborts.count} times`);
  await stage.powerless(a, term);
}

function aborted<T>(
  signal: AbortSignal,
  settle: (resolve: (value: T) => void, reject: (error: Error) => void) => void,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  if (signal.aborted) settle(resolve, reject);
  else signal.addEventListener("abort", () => settle(resolve, reject), { once: true });
  return promise;
}
