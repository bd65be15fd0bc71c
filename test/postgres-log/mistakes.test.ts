// Planted mistakes, made where they would be made: in the guard of the append and of the open, inside of the database. The
// conformance suite must find each of them; the races of races.test.ts are about the same guard.

import { afterAll, beforeAll, expect, it } from "vitest";
import { ConformanceFailure } from "../../src/loops/conformance.ts";
import { logConformance } from "../../src/logs/conformance/index.ts";
import { schemaSql } from "../../src/postgres/schema/schema.ts";
import { TenureError } from "../../src/core/kit/errors.ts";
import type { Log, LogAppended, LogHead, LogOpened, LogRecord } from "../../src/ports/log.ts";
import { type PostgresServer, startPostgres } from "../servers/index.ts";
import { postgresLogWorld } from "./test-log-world.ts";

interface Mistake {
  readonly name: string;
  readonly replace: string;
  readonly by: string;
  /** Cases that must fail; others may. */
  readonly found: string;
  readonly disguise?: (log: Log, database: string) => Log;
}

/** Checks nothing itself: what the database takes is committed. */
class Credulous implements Log {
  readonly #inner: Log;
  readonly #database: string;

  constructor(inner: Log, database: string) {
    this.#inner = inner;
    this.#database = database;
  }

  head(): LogHead {
    return this.#inner.head();
  }

  open(epoch: number): Promise<LogOpened> {
    return this.#inner.open(epoch);
  }

  async append(epoch: number, after: number, batch: readonly Uint8Array[]): Promise<LogAppended> {
    const values = [epoch, after, Buffer.concat(batch), batch.map((data) => data.length)];
    const [row] = await server
      .query<{ taken: boolean; epoch: string }>(APPEND_TO_NEWEST, values, this.#database)
      .catch((error: unknown) => {
        throw new TenureError("BAD_REQUEST", String(error));
      });
    if (row?.taken === false && Number(row.epoch) > epoch) return { outcome: "fenced", epoch: Number(row.epoch) };
    if (row?.taken !== true) throw new TenureError("BAD_REQUEST", "not taken");
    return { outcome: "committed", position: after + batch.length };
  }

  read(from: number, max: number): Promise<readonly LogRecord[]> {
    return this.#inner.read(from, max);
  }

  subscribe(from: number, tell: (record: LogRecord) => void, compacted: () => void): () => void {
    return this.#inner.subscribe(from, tell, compacted);
  }
}

/** The world that runs now is the last one that opened its log in this database. */
const APPEND_TO_NEWEST = `select a.taken, a.in_epoch as epoch from
  (select * from tenure_log_head order by substr(log, 7)::integer desc limit 1) h,
  tenure_log_append(h.log, $1, h.opened, $2, $3, $4::integer[], null) a`;

const MISTAKES: readonly Mistake[] = [
  {
    name: "an append's guard without the epoch",
    replace: "and h.epoch = p_epoch and h.opened = p_opened\n      and h.position = p_after",
    by: "and h.position = p_after",
    found: "once a higher epoch is opened the lower one appends nothing",
    // A node that has heard of the higher epoch asks no more; here the database must be enough.
    disguise: (log, database) => new Credulous(log, database),
  },
  {
    name: "an append's guard without the position",
    replace: "\n      and h.position = p_after",
    by: "",
    found: "an append that names another position than the end",
    // A writer looks at the position too; here the database must be enough.
    disguise: (log, database) => new Credulous(log, database),
  },
  {
    name: "an open that is not refused below the fence",
    replace: "where h.log = p_log and h.epoch <= p_epoch",
    by: "where h.log = p_log",
    found: "a lower epoch can't be opened",
  },
  {
    name: "an append that leaves out the last record of a batch",
    replace: "from unnest(p_lengths) with ordinality",
    by: "from unnest(p_lengths[:greatest(1, cardinality(p_lengths) - 1)]) with ordinality",
    found: "a batch gets consecutive positions",
  },
];

let server: PostgresServer;
let databases = 0;

beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: "off" } });
});

afterAll(async () => {
  await server.end();
});

async function databaseWith(script: string): Promise<string> {
  const name = `mistake_${++databases}`;
  await server.createDatabase(name);
  await server.query(script, [], name);
  return name;
}

async function failuresOf(database: string, { found: about, disguise }: Mistake): Promise<string[]> {
  const failed: string[] = [];
  const dress = disguise === undefined ? undefined : (log: Log): Log => disguise(log, database);
  for (const { name, run } of logConformance(() => postgresLogWorld(server, database, dress))) {
    if (!name.includes(about)) continue;
    await run().catch((error: unknown) => {
      failed.push(`${name}: ${error instanceof ConformanceFailure ? "found" : "broken"}: ${String(error)}`);
    });
  }
  return failed;
}

it.each(MISTAKES)("$name is found: $found", async (mistake) => {
  const { replace, by, found } = mistake;
  const right = schemaSql("public");
  expect(right.split(replace)).toHaveLength(2);
  expect(await failuresOf(await databaseWith(right), mistake)).toEqual([]);
  const failed = await failuresOf(await databaseWith(right.replace(replace, by)), mistake);
  expect(failed.join("\n")).toContain(found);
});
