// The load generator of `txn`, in a process of its own, for both sides: opens them when it is told, loads one of them for a while, and ends when whoever
// started it is gone.

import { assertNever } from "../src/core/kit/assert.ts";
import type { TxnAsk, TxnTold, TxnWindow } from "./txn-generator.ts";
import { openSide, type Side, type SideName } from "./txn-sides.ts";

interface Open {
  readonly side: Side;
  readonly clients: number;
  /** Of each client, over all windows. */
  readonly done: number[];
}

const open = new Map<SideName, Open>();

process.once("disconnect", () => process.exit(0));
process.on("message", (ask: TxnAsk) => {
  answer(ask).then(
    (found) => process.send?.({ window: found } satisfies TxnTold),
    (error: unknown) =>
      process.send?.({ failed: error instanceof Error ? error.message : String(error) } satisfies TxnTold),
  );
});

async function answer(ask: TxnAsk): Promise<TxnWindow | null> {
  switch (ask.ask) {
    case "open": {
      const { side, clients } = ask;
      open.set(side.name, {
        side: await openSide(side, clients),
        clients,
        done: Array.from({ length: clients }, () => 0),
      });
      return null;
    }
    case "window":
      return window(open.get(ask.side)!, ask.ms);
    case "close":
      await Promise.all([...open.values()].map(({ side }) => side.close()));
      open.clear();
      return null;
    default:
      return assertNever(ask, "generator");
  }
}

/** What ends after the window is not counted. */
async function window({ side, clients, done }: Open, ms: number): Promise<TxnWindow> {
  const tookMs: number[] = [];
  let pending = 0;
  const untilMs = performance.now() + ms;
  const client = async (at: number): Promise<void> => {
    for (;;) {
      const fromMs = performance.now();
      if (fromMs >= untilMs) return;
      const state = await side.transact(at, done[at]!++);
      const endedMs = performance.now();
      if (endedMs > untilMs) return;
      tookMs.push(endedMs - fromMs);
      if (state === "pending") pending++;
    }
  };
  await Promise.all(Array.from({ length: clients }, (_, at) => client(at)));
  const sorted = Float64Array.from(tookMs).sort();
  const rank = (part: number): number => sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN;
  return { perS: (tookMs.length * 1_000) / ms, p50Ms: rank(0.5), p99Ms: rank(0.99), pending };
}
