// The door: a client of Tenure's own servers.

export type { CallOptions, ReadOptions } from "./caller.ts";
export type { ClientCertificates } from "./certificates.ts";
export { type Client, type ClientCluster, type ClientOptions, createClient, type NodeAnswer } from "./client.ts";
export type { ClientCoordinators } from "./coordinators/index.ts";
export type * from "./coordinators/views.ts";
export type { EntityType, EventsOptions } from "./events.ts";
export { calculateEventHash, type HashedEvent } from "../core/events/calculate-hash.ts";
export type { ClientFetch } from "./exchange.ts";
export type * from "./job-views.ts";
export type { ClientJobs, JobsQuery, MutateOptions } from "./jobs.ts";
export { type ClientKeys, newKey, type NewKey } from "./keys.ts";
export type { LogsOptions } from "./logs.ts";
export { HistoryRewrittenError } from "./rewritten.ts";
export type { ClientScopes, ScopeHold } from "./scopes.ts";
export type { StreamOptions } from "./streams.ts";
export type { StoredValue, ValueItem } from "../ports/stored-values.ts";
export type { ClientValues, ValueWriteOptions } from "./values/index.ts";
export type { ValueReadOptions } from "./values/pages.ts";
export type { ValuesWatch } from "./values/watch.ts";
export type * from "./transactions/collect.ts";
export type {
  ClientTransactions,
  Outcome,
  ReplayOptions,
  TransactionOptions,
  TransactionReadOptions,
  TransactionsQuery,
} from "./transactions/index.ts";
export { newTransactionId } from "./transactions/new-id.ts";
export type * from "./transactions/views.ts";
export type * from "./views.ts";
export type * from "./work.ts";
