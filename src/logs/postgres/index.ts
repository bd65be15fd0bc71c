// The door of the log in Postgres.

export { PostgresInbox, type PostgresInboxOptions, type Submission } from "./inbox.ts";
export { PostgresNodes, type PostgresNodesOptions, type SiteNode } from "./nodes.ts";
export { PostgresLog, type PostgresLogOptions } from "./postgres-log.ts";
export type { SnapshotPolicy } from "./snapshot-keeper.ts";
export type { WriterCounts } from "./writer.ts";
