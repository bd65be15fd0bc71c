// A fenced transaction with Drizzle, on its own pool. `fencedTransaction` also keeps the process alive when the next leader ends
// the session of an old one; db.transaction() with term.fence alone does not.
//
//   DATABASE_URL=postgres://… node drizzle.ts

import { drizzle } from "drizzle-orm/node-postgres";
import { bigint, pgTable, text } from "drizzle-orm/pg-core";
import { Pool } from "pg";
import { fencedTransaction } from "tenure/drizzle";
import type { FencedTerm } from "./lead.ts";

const posting = pgTable("posting", {
  memo: text().notNull(),
  epoch: bigint({ mode: "number" }).notNull(),
});

export async function post(term: FencedTerm, url: string, memo: string): Promise<void> {
  const pool = new Pool({ connectionString: url });
  try {
    await fencedTransaction(term, drizzle({ client: pool }), async (tx) => {
      await tx.insert(posting).values({ memo, epoch: term.epoch });
    });
  } finally {
    await pool.end();
  }
}

if (import.meta.main) await (await import("./lead.ts")).lead(post);
