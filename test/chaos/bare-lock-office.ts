// The control: leadership by a bare advisory lock, as it is written in many a service. The session that holds the lock
// has a timeout, the flag is cleared when the session ends, and no write asks the database whether it may.

import { Client, Pool } from "pg";
import type { WorkerConfig } from "./messages.ts";
import type { Office, OfficeTerm } from "./office.ts";
import { lanesOf, READ_LANES, WRITE } from "./postgres-tables.ts";

const LOCK_KEY = 8_015_550_199;
const BEAT_MS = 300;

export function bareLockOffice(config: WorkerConfig): Office {
  const pool = new Pool({ connectionString: config.url, max: config.lanes + 2 });
  pool.on("error", () => undefined);
  pool.on("connect", (client) => client.on("error", () => undefined));
  return { lead, stale: undefined, newest: async () => 0, close: () => pool.end() };

  async function lead(work: (term: OfficeTerm) => Promise<void>, signal: AbortSignal): Promise<void> {
    const session = new Client({ connectionString: config.url });
    const over = new AbortController();
    let isLeader = true;
    const lose = (): void => {
      isLeader = false;
      over.abort();
    };
    session.on("error", lose);
    session.on("end", lose);
    signal.addEventListener("abort", lose, { once: true });
    try {
      await session.connect();
      await session.query(`set idle_session_timeout = ${config.timing?.serverTimeoutMs ?? 0}`);
      await Promise.race([session.query("select pg_advisory_lock($1)", [LOCK_KEY]), aborted(signal)]);
      if (signal.aborted) return;
      const { rows } = await session.query<{ epoch: string }>("select nextval('chaos_holder')::text as epoch");
      const beat = setInterval(() => void session.query("select 1").catch(lose), BEAT_MS);
      over.signal.addEventListener("abort", () => clearInterval(beat));
      await work(termOf(Number(rows[0]!.epoch), over.signal, () => isLeader));
    } finally {
      signal.removeEventListener("abort", lose);
      over.abort();
      await session.end().catch(() => undefined);
    }
  }

  function termOf(epoch: number, signal: AbortSignal, isOpen: () => boolean): OfficeTerm {
    return {
      epoch,
      signal,
      isOpen,
      read: async () => lanesOf((await pool.query<object>(READ_LANES)).rows),
      write: async ({ lane, value, worker, seq }, think) => {
        const client = await pool.connect();
        let broken = true;
        try {
          await client.query("begin");
          await think();
          await client.query(WRITE, [lane, value, worker, seq, epoch]);
          await think();
          await client.query("commit");
          broken = false;
        } finally {
          client.release(broken);
        }
      },
      outcomeOf: () => "unknown",
      busy: async () => undefined,
    };
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
