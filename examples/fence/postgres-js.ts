// A fenced transaction with postgres.js, on its own connections. `fencedTransaction` also keeps the process alive, and its
// statements inside the transaction, when the next leader ends the session of an old one; sql.begin() with term.fence alone does not.
//
//   DATABASE_URL=postgres://… node postgres-js.ts

import postgres from "postgres";
import { fencedTransaction } from "tenure/postgres-js";
import type { FencedTerm } from "./lead.ts";

export async function post(term: FencedTerm, url: string, memo: string): Promise<void> {
  const sql = postgres(url);
  try {
    await fencedTransaction(term, sql, async (tx) => {
      await tx`insert into posting (memo, epoch) values (${memo}, ${term.epoch})`;
    });
  } finally {
    await sql.end();
  }
}

if (import.meta.main) await (await import("./lead.ts")).lead(post);
