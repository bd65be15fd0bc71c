// The fence with Drizzle, inside its own transaction.
//
//   DATABASE_URL=postgres://… node drizzle.ts

import { drizzle } from "drizzle-orm/node-postgres";
import { bigint, pgTable, text } from "drizzle-orm/pg-core";
import { Pool } from "pg";
import type { FencedTerm } from "./lead.ts";

const posting = pgTable("posting", {
  memo: text().notNull(),
  epoch: bigint({ mode: "number" }).notNull(),
});

export async function post(term: FencedTerm, url: string, memo: string): Promise<void> {
  const pool = new Pool({ connectionString: url });
  try {
    await drizzle({ client: pool }).transaction(async (tx) => {
      await term.fence((check) => tx.execute(check));
      await tx.insert(posting).values({ memo, epoch: term.epoch });
    });
  } finally {
    await pool.end();
  }
}

if (import.meta.main) await (await import("./lead.ts")).lead(post);
