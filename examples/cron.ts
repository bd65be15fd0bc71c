// A cron that runs once: start as many instances as you like, each tick runs on one of them.
//
// The row that says "this tick was run" and the work are one fenced transaction. An instance that was frozen in the
// middle and comes back can't commit any more, and its successor can't run a tick that was committed.
//
//   create table cron_run (tick_ms bigint primary key, epoch bigint not null, pid int not null);
//   create table cron_total (runs bigint not null); insert into cron_total values (0);
//
//   DATABASE_URL=postgres://… node cron.ts          npm run example -- cron shows it with two instances and a kill -9

import { setTimeout as sleep } from "node:timers/promises";
import { createElector } from "tenure";
import { postgres } from "tenure/postgres";

const everyMs = Number(process.env.EVERY_MS ?? 1_000);
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());

const elector = createElector({
  scope: "example-cron",
  backend: postgres(process.env.DATABASE_URL ?? ""),
  onTransition: (transition) => console.log(JSON.stringify(transition)),
});

try {
  await elector.lead(
    async (term) => {
      for (;;) {
        const tickMs = Math.ceil((Date.now() + 1) / everyMs) * everyMs;
        await sleep(tickMs - Date.now(), undefined, { signal: term.signal });
        await term.tx(async (client) => {
          const { rowCount } = await client.query(
            "insert into cron_run (tick_ms, epoch, pid) values ($1, $2, $3) on conflict do nothing",
            [tickMs, term.epoch, process.pid],
          );
          // Our predecessor may have run this very tick before it went.
          if (rowCount === 1) await client.query("update cron_total set runs = runs + 1");
        });
      }
    },
    { signal: stop.signal, onError: "retry" },
  );
} catch (error) {
  if (!stop.signal.aborted) throw error;
} finally {
  await elector.close();
}
