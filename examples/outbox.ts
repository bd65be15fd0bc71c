// An outbox sender: messages that other transactions have written are delivered in order, by one instance at a time.
//
// The gate is in front of each delivery. It can't recall a message that is on its way, so a receiver may see one
// twice after a failover: messages carry their id, and a receiver drops what it has. None is lost. They are sent in the
// order of their ids, among those that are committed; ids are given out before a commit, so a slow one may come late.
//
//   create table outbox (id bigserial primary key, body text not null, sent_at timestamptz);
//
//   DATABASE_URL=postgres://… RECEIVER_URL=http://… node outbox.ts          npm run example -- outbox

import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { createElector } from "tenure";
import { postgres } from "tenure/postgres";

const SEND_MS_MAX = 1_000;
const IDLE_MS = 50;
const BATCH = 10;

const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());

// The application's own pool: fenced transactions borrow their clients from it.
const url = process.env.DATABASE_URL ?? "";
const pool = new pg.Pool({ connectionString: url, max: 5 });
// An idle session that ends, as all do when the database restarts. Without a listener it would end the process.
pool.on("error", (error) => console.error(error.message));
const elector = createElector({
  scope: "example-outbox",
  backend: postgres({ url, connect: () => pool.connect() }),
  onTransition: (transition) => console.log(JSON.stringify(transition)),
});

try {
  await elector.lead(
    async (term) => {
      while (!term.signal.aborted) {
        const { rows } = await pool.query<{ id: string; body: string }>(
          "select id::text, body from outbox where sent_at is null order by outbox.id limit $1",
          [BATCH],
        );
        for (const message of rows) {
          elector.gate.ensureEpoch(term.epoch, { forMs: SEND_MS_MAX, effect: "send" });
          await send(message);
          await term.tx((client) => client.query("update outbox set sent_at = now() where id = $1", [message.id]));
        }
        if (rows.length === 0) await sleep(IDLE_MS, undefined, { signal: term.signal });
      }
    },
    { signal: stop.signal, onError: "retry" },
  );
} catch (error) {
  if (!stop.signal.aborted) throw error;
} finally {
  await elector.close();
  await pool.end();
}

async function send({ id, body }: { id: string; body: string }): Promise<void> {
  const response = await fetch(`${process.env.RECEIVER_URL}/messages/${id}`, {
    method: "PUT",
    body,
    signal: AbortSignal.timeout(SEND_MS_MAX),
  });
  if (!response.ok) throw new Error(`the receiver answered ${response.status} to message ${id}`);
}
