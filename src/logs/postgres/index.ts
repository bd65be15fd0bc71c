// The door of the log in Postgres.

export { PostgresInbox, type PostgresInboxOptions } from "./inbox.ts";
export { PostgresNodes } from "./nodes.ts";
export { PostgresLog, type PostgresLogOptions } from "./postgres-log.ts";
