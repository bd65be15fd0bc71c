// A leader that keeps its state on Tenure's own servers: a counter, as a value that is written only while the leader's epoch is in force. Start as
// many instances as you like; one at a time counts, and the next one goes on where it stopped.
//
//   TENURE_SERVERS=http://127.0.0.1:7401,… TENURE_KEY=… node servers-values.ts

import { setTimeout as sleep } from "node:timers/promises";
import { createElector } from "tenure";
import { servers } from "tenure/servers";

const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());

const elector = createElector({
  scope: "example-values",
  backend: servers(process.env.TENURE_SERVERS ?? "http://127.0.0.1:7401", { key: process.env.TENURE_KEY }),
});

try {
  await elector.lead(
    async (term) => {
      // What is read here is final: all earlier leaders' writes are in it, and none of them can write any more.
      let count = Number((await term.get("example-counter"))?.value ?? 0);
      while (!term.signal.aborted) {
        const { version } = await term.put("example-counter", ++count);
        console.log(JSON.stringify({ epoch: term.epoch, count, version }));
        await sleep(20);
      }
    },
    // Errors of servers that went away end the term, not the program; so does a write whose outcome is unknown.
    { signal: stop.signal, onError: "retry" },
  );
} catch (error) {
  if (!stop.signal.aborted) throw error;
} finally {
  await elector.close();
}
