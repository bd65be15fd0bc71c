// The fence with `pg`, in a transaction of your own. (`term.tx` does all of this for you.)
//
//   DATABASE_URL=postgres://… node pg.ts

import { Client } from "pg";
import type { FencedTerm } from "./lead.ts";

export async function post(term: FencedTerm, url: string, memo: string): Promise<void> {
  const client = new Client({ connectionString: url });
  // The next leader may end this session between two statements; without a listener that would end the process.
  client.on("error", () => undefined);
  await client.connect();
  try {
    await client.query("begin");
    await term.fence((text, values) => client.query(text, values));
    await client.query("insert into posting (memo, epoch) values ($1, $2)", [memo, term.epoch]);
    await client.query("commit");
  } finally {
    // A connection that ends in the middle of a transaction rolls it back.
    await client.end();
  }
}

if (import.meta.main) await (await import("./lead.ts")).lead(post);
