// A payer that never pays twice. What leaves the database can't be recalled, so three things work together:
//
//   1. "we are about to pay this" is committed first, in a fenced transaction: only the leader of this epoch can;
//   2. the gate is asked just before the call, for as long as the call may take: a leader that was frozen stops here;
//   3. the provider gets the payment's id as its idempotency key, so that a payment whose answer was lost with a
//      crash can be sent again by the next leader and is still made once.
//
// Without 3, nobody can tell a payment that was made from one that was not, whatever elects the leader.
//
//   create table payment (id bigserial primary key, cents int not null, state text not null default 'new', epoch bigint);
//
//   DATABASE_URL=postgres://… PROVIDER_URL=http://… node payer.ts          npm run example -- payer

import { setTimeout as sleep } from "node:timers/promises";
import { createElector } from "tenure";
import { postgres } from "tenure/postgres";

const CALL_MS_MAX = 1_000;
const IDLE_MS = 50;

const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());

const elector = createElector({
  scope: "example-payer",
  backend: postgres(process.env.DATABASE_URL ?? ""),
  onTransition: (transition) => console.log(JSON.stringify(transition)),
});

interface Payment {
  readonly id: string;
  readonly cents: number;
}

try {
  await elector.lead(
    async (term) => {
      while (!term.signal.aborted) {
        const payment = await term.tx(async (client): Promise<Payment | undefined> => {
          const { rows } = await client.query(
            `update payment set state = 'sending', epoch = $1
             where id = (select id from payment where state <> 'paid' order by id limit 1) returning id::text, cents`,
            [term.epoch],
          );
          return rows[0] as unknown as Payment | undefined;
        });
        if (payment === undefined) {
          await sleep(IDLE_MS, undefined, { signal: term.signal });
          continue;
        }
        term.check({ forMs: CALL_MS_MAX, effect: "pay" });
        await pay(payment);
        await term.tx((client) => client.query("update payment set state = 'paid' where id = $1", [payment.id]));
      }
    },
    { signal: stop.signal, onError: "retry" },
  );
} catch (error) {
  if (!stop.signal.aborted) throw error;
} finally {
  await elector.close();
}

async function pay({ id, cents }: Payment): Promise<void> {
  const response = await fetch(`${process.env.PROVIDER_URL}/payments`, {
    method: "POST",
    headers: { "content-type": "application/json", "idempotency-key": `payment-${id}` },
    body: JSON.stringify({ cents }),
    signal: AbortSignal.timeout(CALL_MS_MAX),
  });
  if (!response.ok) throw new Error(`the provider answered ${response.status} to payment ${id}`);
}
