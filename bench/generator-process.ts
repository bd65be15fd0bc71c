// One load generator of the benchmark of jobs, in a process of its own: opens a side when it is told which, does what it is
// asked, and ends when whoever started it is gone.

import { assertNever } from "../src/core/kit/assert.ts";
import type { GeneratorAsk, SideName } from "./generator.ts";
import { fullRate, oneByOne } from "./jobs-flow.ts";
import { GraphileSide } from "./jobs-graphile.ts";
import { PgBossSide } from "./jobs-pgboss.ts";
import { RawSide } from "./jobs-raw.ts";
import { SdkSide } from "./jobs-sdk.ts";
import type { Side } from "./jobs-side.ts";

let side: Side | null = null;

process.once("disconnect", () => process.exit(0));
process.on("message", (ask: GeneratorAsk) => {
  answer(ask).then(
    (told) => process.send?.(told ?? {}),
    (error: unknown) => process.send?.({ failed: error instanceof Error ? error.message : String(error) }),
  );
});

async function answer(ask: GeneratorAsk): Promise<object | undefined> {
  switch (ask.ask) {
    case "open":
      await side?.close();
      side = await open(ask.side, ask.urls, ask.key);
      return undefined;
    case "full-rate":
      return fullRate(side!, ask.options);
    case "one-by-one":
      return oneByOne(side!, ask.samples, ask.warm);
    case "submit":
      for (let left = ask.jobs; left > 0; left -= ask.batch)
        await side!.submit(0, performance.now(), Math.min(left, ask.batch));
      return undefined;
    default:
      return assertNever(ask, "generator");
  }
}

async function open(name: SideName, urls: readonly string[], key: string): Promise<Side> {
  switch (name) {
    case "raw":
      return new RawSide(urls[0]!, key);
    case "sdk":
      return new SdkSide(urls, key);
    case "graphile":
      return GraphileSide.open(urls[0]!);
    case "pgboss":
      return PgBossSide.open(urls[0]!);
    default:
      return assertNever(name, "side");
  }
}
