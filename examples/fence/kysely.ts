// The fence with Kysely, inside its own transaction.
//
//   DATABASE_URL=postgres://… node kysely.ts

import { CompiledQuery, Kysely, PostgresDialect } from "kysely";
import { Pool } from "pg";
import type { FencedTerm, Posting } from "./lead.ts";

export async function post(term: FencedTerm, url: string, memo: string): Promise<void> {
  const dialect = new PostgresDialect({ pool: new Pool({ connectionString: url }) });
  await using db = new Kysely<{ posting: Posting }>({ dialect });
  await db.transaction().execute(async (trx) => {
    await term.fence((text, values) => trx.executeQuery(CompiledQuery.raw(text, values)));
    await trx.insertInto("posting").values({ memo, epoch: term.epoch }).execute();
  });
}

if (import.meta.main) await (await import("./lead.ts")).lead(post);
