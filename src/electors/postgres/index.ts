// The door of the Postgres elector.

export { PostgresBackend } from "./backend.ts";
export { fenceOf, type Isolation, type PostgresTerm, type TxOptions } from "./fence/fence.ts";
export { type PostgresOptions, type PostgresSettings, settingsOf } from "./options.ts";
export type { FenceRun } from "./fence/proof.ts";
