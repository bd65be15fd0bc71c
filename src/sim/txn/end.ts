// What must become true after the faults: within a bound nothing of any transaction is under way, all islands tell the same, the sum of all balances is
// what it was, and new transactions are committed. Then time passes, and messages of long ago arrive: nothing changes by them.

import { WALL_START_MS } from "../kernel/index.ts";
import type { TxnStage } from "./stage.ts";
import { BALANCE, cursorOf, MOVED } from "./accounts.ts";
import {
  TXN_CONVERGE_MS,
  TXN_GHOSTS_MS,
  TXN_SIM_AHEAD_MS_MAX,
  TXN_SIM_BEHIND_MS_MAX,
  TXN_SIM_LOOK_EVERY_MS,
  TXN_SIM_SILENCE_MS,
  TXN_STEPS_MAX,
} from "./limits.ts";
import { markOf } from "./oracle/bodies.ts";

const PROBES = 2;
const PROBE_TRIES = 3;
/** Clocks were put forward: coordinators find each other again. */
const LATER_PROBE_TRIES = 6;

/** Null: all well. */
export async function converge(stage: TxnStage): Promise<string | null> {
  const { world, clients, ledger } = stage;
  let trouble = await rest(stage, "the last fault");
  if (trouble !== null) return trouble;
  ledger.fates(clients.unknown);
  trouble = await probes(stage);
  if (trouble !== null) return trouble;
  const [sentBefore, lateBefore] = [stage.sent, stage.transport.late];
  await run(stage, TXN_SIM_SILENCE_MS);
  // What was asked for long ago may arrive now, and be answered.
  if (stage.sent !== sentBefore && lateBefore === stage.transport.late)
    return `islands say ${stage.sent - sentBefore} things to each other although nothing is under way`;
  if (stage.knobs.laterMs > 0) {
    stage.later(stage.knobs.laterMs);
    trouble = await probes(stage, LATER_PROBE_TRIES);
    if (trouble !== null) return trouble;
  }
  if (stage.knobs.ghosts) trouble = await ghosts(stage);
  return trouble ?? world.finding();
}

async function run({ world }: TxnStage, forMs: number): Promise<void> {
  await world.run(() => false, { untilMs: world.nowMs + forMs, stepsMax: TXN_STEPS_MAX });
}

async function rest(stage: TxnStage, since: string): Promise<string | null> {
  const { world } = stage;
  const untilMs = world.nowMs + TXN_CONVERGE_MS;
  while (world.nowMs < untilMs) {
    await run(stage, TXN_SIM_LOOK_EVERY_MS);
    if (world.findings.length > 0) return world.finding();
    if (unrest(stage) === null) return atRest(stage);
  }
  return `${TXN_CONVERGE_MS} ms after ${since} ${unrest(stage)}`;
}

/** Null: nothing is under way. */
function unrest(stage: TxnStage): string | null {
  const { islands, ledger, clients } = stage;
  if (!clients.isIdle) return "clients wait for answers";
  // A second copy goes on when the first one was answered.
  if (stage.isAsked) return "nodes work on calls of clients";
  if (!stage.founding.isDone) return "not all accounts could be created";
  for (const { id, hash, names, servers } of islands) {
    if (servers.length < names.length) return `not all nodes of ${id} run`;
    const local = ledger.island(hash);
    const behind = names.find((name) => local.positionOf(name) !== local.head);
    if (behind !== undefined) return `${behind} has ${local.positionOf(behind)} of ${local.head} state records`;
    const why = local.unrest();
    if (why !== null) return `at ${id} ${why}`;
  }
  return ledger.problem();
}

/** What must be so then. */
function atRest(stage: TxnStage): string | null {
  for (const server of stage.servers) {
    const { prepared, inDoubt, undelivered } = server.transactions.stats();
    if (prepared + inDoubt + undelivered > 0)
      return `${server.node} shows ${prepared} prepared, ${inDoubt} in doubt and ${undelivered} undelivered, and there are none`;
    const doubt = server.transactions.list({ inDoubt: true, after: null, limit: 10 }).transactions;
    if (doubt.length > 0) return `${server.node} lists ${doubt[0]!.header.id} as in doubt`;
  }
  let sum = 0;
  for (const { hash } of stage.islands)
    for (const [name, { data }] of stage.ledger.island(hash).values)
      if (name.startsWith("account/")) sum += markOf(data).balance ?? 0;
  const expected = BALANCE * stage.knobs.accounts * stage.islands.length;
  if (sum !== expected) return `the sum of all balances is ${sum}, and was ${expected}`;
  for (const moved of MOVED) {
    const places = stage.islands.filter(({ hash }) => stage.ledger.island(hash).values.has(cursorOf(moved)));
    if (places.length !== 1) return `the cursor of ${moved} is at ${places.length} islands`;
  }
  return null;
}

/** By each node's wall clock, and those of clients: what is asked for now is neither too old nor of the future. */
function isTaken({ world, skewed }: TxnStage): boolean {
  const rightMs = WALL_START_MS + world.nowMs + skewed;
  return [...world.nodes].every(({ process }) => {
    const aheadMs = process.machine.wallMs() - rightMs;
    return aheadMs > -TXN_SIM_BEHIND_MS_MAX && aheadMs < TXN_SIM_AHEAD_MS_MAX;
  });
}

/** Nobody is in the way of these: each is committed, at most after some tries. */
async function probes(stage: TxnStage, triesMax = PROBE_TRIES): Promise<string | null> {
  if (!isTaken(stage)) return null;
  const ends: string[] = [];
  for (let tries = 0; tries < triesMax; tries++) {
    // What one that was not committed has locked is released two round trips later: until then it is in the way of the next.
    const isFree = ends.length === 0 || ends.at(-1) === "committed";
    const trouble =
      (isFree ? null : await rest(stage, "a transaction that was not committed")) ?? (await probe(stage, ends));
    if (trouble !== null) return trouble;
    if (ends.filter((end) => end === "committed").length === PROBES) break;
  }
  if (ends.filter((end) => end === "committed").length < PROBES)
    return `transactions that nobody is in the way of end as ${ends.join(", ")}`;
  return rest(stage, "transactions that nobody was in the way of");
}

async function probe(stage: TxnStage, ends: string[]): Promise<string | null> {
  const before = ends.length;
  stage.clients.probe(stage.random.fork(`probe/${stage.ledger.nextBody}`), (end) => void ends.push(end));
  for (;;) {
    await run(stage, TXN_SIM_LOOK_EVERY_MS);
    if (stage.world.findings.length > 0) return stage.world.finding();
    if (ends.length > before) return null;
  }
}

/** What was sent once comes again, to whoever listens there by now. */
async function ghosts(stage: TxnStage): Promise<string | null> {
  const { transport, ledger, world, random } = stage;
  const before = ledger.outcomes();
  const stream = random.fork("ghosts");
  for (const sent of transport.sent) {
    const atMs = world.nowMs + stream.between(0, TXN_GHOSTS_MS / 4);
    world.scheduler.schedule(atMs, world.scheduler.owner("ghosts"), () => transport.again(sent));
  }
  await run(stage, TXN_GHOSTS_MS / 4);
  const trouble = await rest(stage, "messages of long ago");
  if (trouble !== null) return trouble;
  const changed = ledger.changedSince(before);
  return changed === null ? null : `after messages of long ago ${changed}`;
}
