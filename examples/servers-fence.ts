// The fence for whatever is led through Tenure's own servers, in any store that can compare and write in one step: here a
// file of SQLite. Start as many instances as you like on this machine; one at a time counts.
//
//   TENURE_SERVERS=http://127.0.0.1:7401,… TENURE_KEY=… FILE=counter.db node servers-fence.ts

import { setTimeout as sleep } from "node:timers/promises";
import { DatabaseSync } from "node:sqlite";
import { createElector, StaleEpochError } from "tenure";
import { servers } from "tenure/servers";

const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());

const db = new DatabaseSync(process.env.FILE ?? "counter.db", { timeout: 5_000 });
db.exec(`create table if not exists counter (id integer primary key check (id = 1), epoch integer, value integer);
         insert into counter values (1, 0, 0) on conflict do nothing`);

const elector = createElector({
  scope: "example-counter",
  backend: servers(process.env.TENURE_SERVERS ?? "http://127.0.0.1:7401", { key: process.env.TENURE_KEY }),
});

try {
  await elector.lead(
    async (term) => {
      // 1. Raise the epoch before anything is read: from here on no older leader can write.
      fenced(term.epoch, "update counter set epoch = ?1 where epoch <= ?1");
      let value = Number(db.prepare("select value from counter").get()?.["value"]);
      while (!term.signal.aborted) {
        term.check();
        // 2. Compare it in the very statement that writes.
        fenced(term.epoch, `update counter set value = ${++value} where epoch = ?1`);
        console.log(JSON.stringify({ epoch: term.epoch, value }));
        await sleep(20);
      }
    },
    { signal: stop.signal },
  );
} catch (error) {
  if (!stop.signal.aborted) throw error;
} finally {
  await elector.close();
}

function fenced(epoch: number, sql: string): void {
  if (db.prepare(sql).run(epoch).changes !== 1) throw new StaleEpochError(elector.scope, epoch);
}
