// The one client process of a benchmark, for both sides: started with an IPC channel, does what load-messages.ts says, and
// ends when whoever started it is gone.

import { assertNever } from "../src/core/kit/assert.ts";
import {
  type Acks,
  type Ask,
  type Awaited,
  monotonicMs,
  type Side,
  type Told,
  type WindowResult,
} from "./load-messages.ts";
import { etcdTarget, type PutOutcome, type Target, tenureTarget } from "./load-targets.ts";

const ETCD_CONNECTIONS = Number(process.env["BENCH_ETCD_CONNECTIONS"] ?? 1);
const FIND_POLL_MS = 1;

const targets = new Map<Side, Target>();
/** Writers look at it before each write. */
const order = { isWriting: false };
let writers: Promise<unknown> = Promise.resolve();
let watching: { victim: string; foundWallMs: number | null; settle: (awaited: Awaited) => void } | null = null;
let awaited: Promise<Awaited> | null = null;
let recorded: number[] | null = null;
let refused = 0;

process.once("disconnect", () => process.exit(0));
process.on("message", (ask: Ask) => {
  answer(ask).then(
    (told) => process.send?.({ ...told, ask: ask.ask } satisfies Told),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});

async function answer(ask: Ask): Promise<Omit<Told, "ask">> {
  switch (ask.ask) {
    case "open":
      targets.get(ask.side)?.close();
      targets.set(
        ask.side,
        ask.side === "tenure"
          ? tenureTarget(ask.ports, ask.refusalsMax)
          : etcdTarget(ask.ports, ask.leader, ask.patienceMs, ETCD_CONNECTIONS),
      );
      return {};
    case "window":
      return { window: await window(targets.get(ask.side)!, ask) };
    case "begin":
      begin(targets.get(ask.side)!, ask.writers);
      return {};
    case "halt":
      order.isWriting = false;
      await writers;
      return {};
    case "watch":
      awaited = new Promise((settle) => (watching = { victim: ask.victim, foundWallMs: null, settle }));
      return {};
    case "awaited":
      return { awaited: (await awaited) ?? undefined };
    case "record":
      recorded = [];
      refused = 0;
      return {};
    case "acks": {
      const acks: Acks = { atMs: recorded ?? [], refused };
      recorded = null;
      return { acks };
    }
    default:
      return assertNever(ask, "load process");
  }
}

/** Each client writes, waits for the answer, and writes again. */
async function window(target: Target, { clients, warmMs, ms }: Extract<Ask, { ask: "window" }>): Promise<WindowResult> {
  const startedMs = performance.now() + warmMs;
  const endMs = startedMs + ms;
  const takenMs: number[] = [];
  let failed = 0;
  const client = async (writer: number): Promise<void> => {
    for (let n = 0; ; n++) {
      const sentMs = performance.now();
      if (sentMs >= endMs) return;
      const outcome = await target.put(writer, n);
      const ackedMs = performance.now();
      if (outcome.kind !== "acked") failed++;
      else if (ackedMs >= startedMs && ackedMs < endMs) takenMs.push(ackedMs - sentMs);
    }
  };
  await Promise.all(Array.from({ length: clients }, (_, writer) => client(writer)));
  const sorted = Float64Array.from(takenMs).sort();
  const rank = (part: number): number => sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN;
  return { perSecond: (takenMs.length * 1_000) / ms, p50Ms: rank(0.5), p99Ms: rank(0.99), failed };
}

function begin(target: Target, count: number): void {
  order.isWriting = true;
  const poll = setInterval(() => seeLeader(target), FIND_POLL_MS);
  const writer = async (one: number): Promise<void> => {
    for (let n = 0; order.isWriting; n++) heard(await target.put(one, n));
  };
  writers = Promise.all(Array.from({ length: count }, (_, one) => writer(one))).finally(() => clearInterval(poll));
}

function heard(outcome: PutOutcome): void {
  if (outcome.kind === "refused") refused++;
  if (outcome.kind !== "acked") return;
  const ackedMs = monotonicMs();
  recorded?.push(ackedMs);
  if (watching === null || outcome.node === watching.victim) return;
  const { settle, foundWallMs } = watching;
  watching = null;
  settle({ node: outcome.node, ackedMs, foundWallMs: foundWallMs ?? Date.now() });
}

function seeLeader(target: Target): void {
  if (watching === null || watching.foundWallMs !== null) return;
  const leader = target.leader();
  if (leader !== null && leader !== watching.victim) watching.foundWallMs = Date.now();
}
