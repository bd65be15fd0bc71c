// A fenced transaction with Kysely, on its own pool. `fencedTransaction` also keeps the process alive when the next leader ends
// the session of an old one; db.transaction() with term.fence alone does not.
//
//   DATABASE_URL=postgres://… node kysely.ts

import { Kysely, PostgresDialect } from "kysely";
import { Pool } from "pg";
import { fencedTransaction } from "tenure/kysely";
import type { FencedTerm, Posting } from "./lead.ts";

export async function post(term: FencedTerm, url: string, memo: string): Promise<void> {
  const dialect = new PostgresDialect({ pool: new Pool({ connectionString: url }) });
  await using db = new Kysely<{ posting: Posting }>({ dialect });
  await fencedTransaction(term, db, async (trx) => {
    await trx.insertInto("posting").values({ memo, epoch: term.epoch }).execute();
  });
}

if (import.meta.main) await (await import("./lead.ts")).lead(post);
