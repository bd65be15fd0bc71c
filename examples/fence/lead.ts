// What the examples of this folder share: a term, the table they write to, and the run of one of them.

import { createElector, type Term } from "tenure";
import { type PooledClient, postgres, type PostgresTerm } from "tenure/postgres";

export type FencedTerm = Term & PostgresTerm<PooledClient>;

/** Writes one posting, in a transaction of its own that the fence has let in. */
export type Post = (term: FencedTerm, url: string, memo: string) => Promise<void>;

/** create table posting (memo text not null, epoch bigint not null) */
export interface Posting {
  readonly memo: string;
  readonly epoch: number;
}

export async function lead(post: Post): Promise<void> {
  const url = process.env["DATABASE_URL"] ?? "";
  await using elector = createElector({ scope: "example-fence", backend: postgres(url) });
  await elector.lead(async (term) => {
    await post(term, url, "rent");
    console.log(`posted in epoch ${term.epoch}`);
  });
}
