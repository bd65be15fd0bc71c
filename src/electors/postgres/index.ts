// The door of the Postgres elector.

export { PostgresBackend } from "./backend.ts";
export { PostgresDesk } from "./desk.ts";
export { fenceOf, type Isolation, type PostgresTerm, type TxOptions } from "./fence.ts";
export { lockKeyOf } from "./lock-key.ts";
export { type PostgresOptions, type PostgresSettings, settingsOf } from "./options.ts";
export type { FenceRun } from "./proof.ts";
