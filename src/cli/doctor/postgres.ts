// What the doctor looks at in Postgres: the facts, as plain data. postgres-look.ts gathers them, the judgement
// over them (postgres-judge.ts, postgres-scopes.ts) is pure.

import type { PostgresSettings } from "../../electors/postgres/index.ts";
import type { SessionRecord } from "../../ports/backends/scope-admin.ts";
import type { SchemaState } from "../../postgres/schema/schema.ts";
import type { Fact } from "./report.ts";

export { quoteName } from "../../electors/postgres/watch-sql.ts";

export interface PostgresFacts {
  /** `host:port/database`. */
  readonly where: string;
  readonly settings: PostgresSettings;
  /** `--scope`; undefined for all that are stored. */
  readonly scope: string | undefined;
  readonly connection: Connection;
  /** Undefined where there was no connection. */
  readonly server: Server | undefined;
}

/** How far we came. */
export type Connection =
  | { readonly stage: "open"; readonly ms: number }
  | { readonly stage: FailedStage; readonly message: string };

/** `silent`: connected, and never answered. `client`: the package `pg` is missing, or the URL is wrong. */
export type FailedStage =
  | "dns"
  | "tcp"
  | "silent"
  | "tls"
  | "login"
  | "database"
  | "full"
  | "starting"
  | "pooler"
  | "client"
  | "other";

export interface Server {
  readonly role: string;
  readonly database: string;
  /** server_version_num, and as people write it. */
  readonly version: number;
  readonly versionText: string;
  readonly isStandby: boolean;
  /** The primary's address, where a standby tells us. */
  readonly primary: string | null;
  readonly configured: Fact<ReadonlyMap<string, Setting>>;
  readonly session: Fact<SessionTimeouts>;
  readonly pooler: Fact<Pooler>;
  readonly schema: Fact<SchemaFacts>;
  readonly log: Fact<LogFacts>;
  readonly connections: Fact<Connections>;
  readonly scopes: Fact<readonly ScopeFacts[]>;
  readonly clock: Fact<ClockFacts>;
  readonly latency: Fact<Latency>;
  readonly notify: Fact<{ readonly arrived: boolean }>;
}

/** A row of pg_settings, as a new session of this role has it. */
export interface Setting {
  /** In its base unit: milliseconds, seconds, or as text. */
  readonly value: string;
  /** default, configuration file, global, database, user, database user, client, command line … */
  readonly source: string;
}

/** What a session has after it was told what leaders are told; in milliseconds. */
export interface SessionTimeouts {
  readonly wanted: Readonly<Record<string, number>>;
  readonly found: Readonly<Record<string, number>>;
  /** Whether the server can look at the socket while a statement runs. */
  readonly checksConnection: boolean;
}

export type Pooler =
  | { readonly kind: "none" }
  | { readonly kind: "transaction" | "statement"; readonly evidence: string };

export interface SchemaFacts {
  readonly state: SchemaState;
  /** Where Tenure's tables are, if they are not where they should be. */
  readonly elsewhere: readonly { readonly database: string; readonly schema: string }[];
  /** What the role lacks, with the statement that grants it. */
  readonly denied: readonly { readonly what: string; readonly grant: string }[];
  /** Who owns tenure_bump, and so ends fenced transactions; null where there is none. */
  readonly owner: { readonly name: string; readonly maySignal: boolean } | null;
  /** Triggers of ours that are switched off or gone. */
  readonly triggersOff: readonly string[];
  readonly triggersMissing: readonly string[];
  readonly unlogged: readonly string[];
}

/** Of the logs that servers keep here. */
export interface LogFacts {
  /** The role may read the tables; the rest of what it may not use is in `denied`. */
  readonly isReadable: boolean;
  readonly denied: SchemaFacts["denied"];
  readonly triggersOff: readonly { readonly name: string; readonly table: string }[];
  readonly triggersMissing: readonly string[];
  readonly heads: readonly {
    readonly log: string;
    readonly epoch: number;
    readonly position: number;
    readonly first: number;
    readonly snapshot: number;
    /** Its first and its last record are there. */
    readonly isWhole: boolean;
  }[];
  /** Of logs that there are. */
  readonly inbox: { readonly count: number; readonly oldestMs: number | null };
  /** Submitted to logs that no server keeps. */
  readonly strays: readonly { readonly log: string; readonly count: number }[];
  readonly nodes: readonly { readonly node: string; readonly url: string; readonly silentMs: number }[];
}

export interface Connections {
  readonly used: number;
  /** Without those that are reserved for others than this role. */
  readonly max: number;
  /** Null for no limit. */
  readonly role: { readonly used: number; readonly max: number } | null;
  readonly database: { readonly used: number; readonly max: number } | null;
}

export interface ScopeFacts {
  readonly scope: string;
  /** Null for a scope that is asked about and not stored. */
  readonly storedKey: string | null;
  /** What our settings make of its name. */
  readonly expectedKey: string;
  /** Which stored scope has the expected key. */
  readonly keyBelongsTo: string | null;
  readonly holder: string | null;
  readonly isHeld: boolean;
  readonly heartbeatAgeMs: number | null;
  readonly lockHolders: readonly Occupant[];
  readonly fenceHolders: readonly Occupant[];
}

export interface Occupant extends SessionRecord {
  readonly ageMs: number | null;
}

export interface ClockFacts {
  /** Seconds that the server counts while this machine counts one. */
  readonly rate: number;
  /** The rate is right to ± this. */
  readonly uncertainty: number;
  readonly overMs: number;
  /** Server's wall time minus ours. */
  readonly offsetMs: number;
}

export interface Latency {
  readonly samples: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
