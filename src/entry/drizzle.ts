// `tenure/drizzle`: a fenced transaction of your own Drizzle, over `pg` or postgres.js. Nothing is imported: the instance is the one that you give.

import { requireNode } from "../drivers/system/host.ts";

export { fencedTransaction, type DrizzleDatabase } from "../electors/postgres/adapters/drizzle.ts";
export type { FencedTerm } from "../electors/postgres/adapters/own-transaction.ts";
export type { Isolation, TxOptions } from "../electors/postgres/index.ts";

requireNode();
