// `tenure/postgres-js`: a fenced transaction of your own postgres.js. Nothing is imported: the instance is the one that you give.

import { requireNode } from "../drivers/system/host.ts";

export { fencedTransaction, type PostgresJs } from "../electors/postgres/adapters/postgres-js.ts";
export type { FencedTerm } from "../electors/postgres/adapters/own-transaction.ts";
export type { Isolation, TxOptions } from "../electors/postgres/index.ts";

requireNode();
