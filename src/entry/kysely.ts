// `tenure/kysely`: a fenced transaction of your own Kysely, over a Pool of `pg`. Nothing is imported: the instance is the one that you give.

import { requireNode } from "../drivers/system/host.ts";

export { fencedTransaction, type KyselyDatabase } from "../electors/postgres/adapters/kysely.ts";
export type { FencedTerm } from "../electors/postgres/adapters/own-transaction.ts";
export type { Isolation, TxOptions } from "../electors/postgres/index.ts";

requireNode();
