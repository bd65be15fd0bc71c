// The fence with postgres.js, inside its own transaction.
//
//   DATABASE_URL=postgres://… node postgres-js.ts

import postgres from "postgres";
import type { FencedTerm } from "./lead.ts";

export async function post(term: FencedTerm, url: string, memo: string): Promise<void> {
  const sql = postgres(url);
  try {
    await sql.begin(async (tx) => {
      await term.fence((text, values) => tx.unsafe(text, values));
      await tx`insert into posting (memo, epoch) values (${memo}, ${term.epoch})`;
    });
  } finally {
    await sql.end();
  }
}

if (import.meta.main) await (await import("./lead.ts")).lead(post);
