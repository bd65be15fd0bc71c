// A led workload that moves between islands, with its cursor and its queue: a loop that submits a job for each step. It is where its cursor is: a value
// that exists on one island at a time. Every step is one transaction (cursor and job), and so is the move: scope and cursor leave here and appear there,
// with the next job, while this instance's epoch is in force; or nothing of it happens. So over all islands each step has one job, whatever is killed.
//
//   HERE=https://127.0.0.1:7601 THERE=https://127.0.0.1:7611 CERTS=certs node move-workload.ts
//
// Start one at each place, with HERE and THERE swapped (several at one place: one works, the others wait). SIGUSR2 moves the workload away. CERTS has
// ca.crt, sdk-mover.crt and .key (`tenure cert issue --sdk mover`: holds scopes), tc-mover.crt and .key (`--tc mover`: decides transactions). It begins
// with `tenure value put orders/cursor 0`, at one place.

import { readFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient, type Transaction } from "tenure/client";

const SCOPE = "orders";
const CURSOR = "orders/cursor";
/** Who waits at a place to go on there. */
const READY = "orders/ready";
const TTL_MS = 6_000;
const STEP_MS = Number(process.env.STEP_MS ?? 1_000);
const { HERE = "https://127.0.0.1:7601", THERE = "https://127.0.0.1:7611", CERTS = "certs" } = process.env;

const here = createClient({ urls: HERE, fetch: certified("sdk-mover") });
const there = createClient({ urls: THERE, fetch: certified("sdk-mover") });
const coordinators = createClient({ urls: [HERE, THERE], fetch: certified("tc-mover") });
const me = { session: crypto.randomUUID(), identity: `mover-${process.pid}` };

let isMoving = false;
process.on("SIGUSR2", () => {
  isMoving = true;
});

for (;;) {
  try {
    await arrived();
    await work();
  } catch (error) {
    // Nobody led, a server went away, or the epoch was over: begin again with what is true now. What was decided stays decided.
    console.error(JSON.stringify({ waits: (error as Error).message }));
    await sleep(STEP_MS);
  }
}

/** Resolves when the workload is here. Until then it is known at this island that this instance would go on with it. */
async function arrived(): Promise<void> {
  if ((await here.values.get(CURSOR)) !== null) return;
  await here.values.put(READY, me);
  for await (const item of here.values.watch({ prefix: CURSOR })) if (item.kind === "put") return;
}

async function work(): Promise<void> {
  // Where a move has acquired the scope for this session, this is the same hold.
  const grant = await here.scopes.acquire({ scope: SCOPE, ...me, ttlMs: TTL_MS, waitMs: 5_000 });
  if (!grant.granted) return;
  const hold = { scope: SCOPE, session: me.session, epoch: grant.epoch };
  const leave = new AbortController();
  const renewed = renewals(hold, leave.signal);
  try {
    for (let cursor = await here.values.get(CURSOR); cursor !== null; cursor = await here.values.get(CURSOR)) {
      const at = { step: Number(cursor.value) + 1, version: cursor.version, epoch: grant.epoch };
      await (isMoving ? move(at) : next(at));
      await Promise.race([sleep(STEP_MS), renewed]);
    }
  } finally {
    leave.abort();
  }
}

/** Ends with an error when the epoch is over. The fence is in the transactions: this only stops useless work. */
async function renewals(hold: Parameters<typeof here.scopes.renew>[0], signal: AbortSignal): Promise<never> {
  for (;;) {
    await sleep(TTL_MS / 3, undefined, { signal });
    await here.scopes.renew(hold, { signal });
  }
}

interface At {
  readonly step: number;
  readonly version: number;
  readonly epoch: number;
}

/** The next job, and the cursor moved past it. */
async function next({ step, version, epoch }: At): Promise<void> {
  await decided((t) => {
    t.require(HERE, SCOPE, epoch);
    t.on(HERE).put(CURSOR, step, { ifVersion: version });
    t.on(HERE).submit(jobOf(step));
  });
  console.log(JSON.stringify({ step, epoch }));
}

/** Away from here, to whoever waits there. */
async function move({ step, version, epoch }: At): Promise<void> {
  isMoving = false;
  const ready = await there.values.get(READY);
  if (ready === null) return console.error(JSON.stringify({ stays: "nobody waits there" }));
  const { session, identity } = ready.value as typeof me;
  await decided((t) => {
    t.require(HERE, SCOPE, epoch);
    t.on(HERE).release(SCOPE, epoch);
    t.on(HERE).delete(CURSOR, { ifVersion: version });
    t.on(THERE).check(READY, ready.version);
    t.on(THERE).acquire(SCOPE, { session, identity, ttlMs: TTL_MS });
    t.on(THERE).put(CURSOR, step, { ifVersion: 0 });
    t.on(THERE).submit(jobOf(step));
  });
  console.log(JSON.stringify({ moved: step, to: identity }));
}

function jobOf(step: number) {
  return { kind: "order", queue: "orders", labels: { step: String(step) } };
}

/** In the end it is known of each transaction whether it was done: until then it is sent again, with its own id. */
async function decided(collect: (t: Transaction) => void): Promise<void> {
  let outcome: Awaited<ReturnType<typeof coordinators.transactions.run>> = await coordinators.transaction(collect);
  while (outcome.state === "unknown") {
    await sleep(STEP_MS);
    outcome = await coordinators.transactions.run(outcome.request);
  }
  if (outcome.state === "rolled-back") throw new Error(`${outcome.reason.code}: ${outcome.reason.message}`);
}

/** `fetch` with an authority and a certificate of one's own. */
function certified(name: string): (url: string, init: RequestInit) => Promise<Response> {
  const [ca, cert, key] = ["ca.crt", `${name}.crt`, `${name}.key`].map((file) => readFileSync(join(CERTS, file)));
  return (url, { method = "GET", headers, body, signal }) =>
    new Promise((resolve, reject) => {
      const options = { ca, cert, key, method, headers: headers as Record<string, string> };
      const sent = request(url, { ...options, ...(signal && { signal }) }, (incoming) => {
        const stream = ReadableStream.from<Uint8Array>(incoming);
        resolve(
          new Response(stream, { status: incoming.statusCode!, headers: incoming.headers as Record<string, string> }),
        );
      });
      sent.once("error", reject);
      sent.end(body);
    });
}
