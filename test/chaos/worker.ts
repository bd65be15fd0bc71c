// A worker process of a chaos run: leads when it can, and while it leads increments the counter in all lanes at once.
//
//   campaigning ──▶ leading: lanes read ─▶ think, write, think, commit ─▶ … ──▶ campaigning
//
// - Where the lanes stand is read once in a term and then kept in memory. That is right for a single leader, and for nobody
//   else.
// - After an increment whose outcome is unknown the memory may be wrong: the worker gives its term up, and reads again
//   in the next one. That an older transaction can't commit any more then is what the fence promises.
// - After a term that was lost it goes on for a while to send writes with the old epoch, past the gate.
// - It ends when it is told to (SIGTERM), and when the harness is gone.

import { setTimeout as sleep } from "node:timers/promises";
import { assertNever } from "../../src/core/kit/assert.ts";
import type { Transition } from "../../src/ports/elector.ts";
import { CONFIG_VARIABLE, type Order, type Report, type WorkerConfig } from "./messages.ts";
import { type Office, type OfficeTerm, OutcomeUnknown } from "./office.ts";

const STALE_SENT_AFTER_TERM = 8;
const CLOSED_GATE_POLL_MS = 10;
const RETRY_MS = 20;

const config = JSON.parse(process.env[CONFIG_VARIABLE] ?? "null") as WorkerConfig;
const stopping = new AbortController();
let present: OfficeTerm | undefined;
let lastSeq = 0;

process.on("SIGTERM", () => stopping.abort());
process.on("disconnect", () => process.exit(0));
process.on("message", (order: Order) => obey(order));

const office = await openOffice();
while (!stopping.signal.aborted) {
  try {
    await office.lead(work, stopping.signal);
  } catch (error) {
    if (stopping.signal.aborted) break;
    if (!(error instanceof OutcomeUnknown)) tell({ is: "trouble", message: String(error) });
    await sleep(RETRY_MS);
  }
}
await office.close();
process.disconnect?.();
process.exit(0);

/** Only the office that is needed is loaded: a worker should start fast. */
async function openOffice(): Promise<Office> {
  switch (config.kind) {
    case "postgres":
      return (await import("./postgres-office.ts")).postgresOffice(config, tellTransition);
    case "etcd":
      return (await import("./etcd-office.ts")).etcdOffice(config, tellTransition);
    case "servers":
      return (await import("./servers-office.ts")).serversOffice(config, tellTransition);
    case "bare-lock":
      return (await import("./bare-lock-office.ts")).bareLockOffice(config);
    case "etcdctl":
      return (await import("./etcdctl-office.ts")).etcdctlOffice(config);
    default:
      return assertNever(config.kind, "kind of worker");
  }
}

function tellTransition(transition: Transition): void {
  const epoch = "epoch" in transition ? transition.epoch : 0;
  const reason = "reason" in transition ? transition.reason : "";
  tell({ is: "transition", kind: transition.kind, epoch, reason });
}

async function work(term: OfficeTerm): Promise<void> {
  present = term;
  const giveUp = new AbortController();
  const over = AbortSignal.any([term.signal, giveUp.signal]);
  try {
    const stands = await readLanes(term);
    const lanes = stands.map((value, lane) =>
      runLane(term, lane, value, over).catch((error: unknown) => {
        giveUp.abort();
        throw error;
      }),
    );
    const failed = (await Promise.allSettled(lanes)).find((lane) => lane.status === "rejected");
    if (failed !== undefined && !term.signal.aborted) throw failed.reason;
  } finally {
    present = undefined;
    if (!stopping.signal.aborted) void sendStale(term.epoch);
  }
}

async function runLane(term: OfficeTerm, lane: number, entered: number, over: AbortSignal): Promise<void> {
  let stands = entered;
  while (!over.aborted) {
    if (!term.isOpen()) {
      await sleep(CLOSED_GATE_POLL_MS);
      continue;
    }
    const seq = ++lastSeq;
    const value = stands + 1;
    const isFirst = lane === 0 && stands === entered;
    tell({ is: "begin", seq, lane, value, epoch: term.epoch });
    try {
      await term.write({ worker: config.name, seq, lane, value }, isFirst ? atOnce : think);
      stands = value;
      tell({ is: "ack", seq });
    } catch (error) {
      const outcome = term.outcomeOf(error);
      tell({ is: outcome, seq, why: String(error) });
      if (outcome === "unknown") throw new OutcomeUnknown(`increment ${seq}`, { cause: error });
      await sleep(CLOSED_GATE_POLL_MS);
    }
  }
}

/** A read that failed has no outcome that could matter: it is tried again while the term lasts. */
async function readLanes(term: OfficeTerm): Promise<readonly number[]> {
  const over = new Promise<readonly number[]>((resolve) => {
    term.signal.addEventListener("abort", () => resolve([]), { once: true });
  });
  while (!term.signal.aborted) {
    try {
      return await Promise.race([term.read(), over]);
    } catch {
      await sleep(CLOSED_GATE_POLL_MS);
    }
  }
  return [];
}

async function sendStale(epoch: number): Promise<void> {
  if (office.stale === undefined) return;
  for (let sent = 0; sent < STALE_SENT_AFTER_TERM; sent++) {
    try {
      const newest = await office.newest();
      tell({ is: "stale", epoch, newest, outcome: await office.stale(epoch, think) });
    } catch {
      // The server is away, or the worker is ending: nothing was sent.
    }
    await sleep(RETRY_MS);
  }
}

/** The first write of a term, which failover is measured by. */
async function atOnce(): Promise<void> {}

function think(): Promise<void> {
  return sleep(Math.random() * config.thinkMsMax);
}

function obey(order: Order): void {
  if (order.do === "spin") {
    const until = performance.now() + order.ms;
    while (performance.now() < until);
    tell({ is: "spun" });
    return;
  }
  // It rejects when the worker is killed or the server ends it: that is what it is for.
  present?.busy(order.ms).catch(() => undefined);
}

function tell(report: Report): void {
  if (process.send === undefined) process.stdout.write(`${JSON.stringify(report)}\n`);
  else if (process.connected) process.send(report);
}
