// A healthy server as the doctor sees it, for tests that make one thing wrong at a time.

import { TIMING } from "../../core/trust/test-bench.ts";
import type { PostgresFacts, ScopeFacts, Server, Setting } from "./postgres.ts";
import { judgePostgres } from "./postgres-judge.ts";
import { SETTING_NAMES } from "./postgres-settings.ts";
import type { Check } from "./report.ts";

/** The defaults; a test compares them with the elector's own. */
export const SETTINGS: PostgresFacts["settings"] = {
  schema: "public",
  migrate: "auto",
  wait: "block",
  lockKey: undefined,
  channel: "tenure_leader_change",
  epochStaleThresholdMs: undefined,
  timing: { ...TIMING, holdBackMs: 250 },
  session: { waitingIdleMs: 2_000, lockMs: 1_000, statementMs: 2_000 },
};

const VALUES: Readonly<Record<string, string>> = {
  default_transaction_read_only: "off",
  default_transaction_isolation: "read committed",
  synchronous_commit: "on",
  fsync: "on",
  full_page_writes: "on",
};

export function configured(changes: Readonly<Record<string, Setting>> = {}): Server["configured"] {
  const plain = SETTING_NAMES.map((name) => [name, { value: VALUES[name] ?? "0", source: "default" }] as const);
  return { value: new Map<string, Setting>([...plain, ...Object.entries(changes)]) };
}

export const HEALTHY_SCHEMA = {
  state: { kind: "current", version: 1, denied: [], foreign: [] },
  elsewhere: [],
  denied: [],
  owner: { name: "owner", maySignal: true },
  triggersOff: [],
  triggersMissing: [],
  unlogged: [],
} as const;

export const HEALTHY_LOG = {
  isReadable: true,
  denied: [],
  triggersOff: [],
  triggersMissing: [],
  heads: [{ log: "jobs", epoch: 3, position: 900, first: 1, snapshot: 800, isWhole: true }],
  inbox: { count: 0, oldestMs: null },
  strays: [],
  nodes: [{ node: "n1", url: "http://n1", silentMs: 400 }],
} as const;

const TIMEOUTS = { statement_timeout: 2_000, lock_timeout: 1_000, idle_session_timeout: 6_000 };

const HEALTHY: Server = {
  role: "app",
  database: "shop",
  version: 180_000,
  versionText: "18.0",
  isStandby: false,
  primary: null,
  configured: configured(),
  session: { value: { wanted: TIMEOUTS, found: TIMEOUTS, checksConnection: true } },
  pooler: { value: { kind: "none" } },
  schema: { value: HEALTHY_SCHEMA },
  log: { value: HEALTHY_LOG },
  connections: { value: { used: 5, max: 100, role: null, database: null } },
  scopes: { value: [] },
  clock: { value: { rate: 1, uncertainty: 0.001, overMs: 1_000, offsetMs: 3 } },
  latency: { value: { samples: 200, p50Ms: 1, p99Ms: 3 } },
  notify: { value: { arrived: true } },
};

export const HELD: ScopeFacts = {
  scope: "jobs",
  storedKey: "1",
  expectedKey: "1",
  keyBelongsTo: "jobs",
  holder: "one",
  isHeld: true,
  heartbeatAgeMs: 500,
  lockHolders: [{ pid: 1, user: "app", applicationName: "tenure jobs", client: null, prepared: null, ageMs: null }],
  fenceHolders: [],
};

export function factsOf(server: Partial<Server>, scope?: string): PostgresFacts {
  return {
    where: "db:5432/shop",
    settings: SETTINGS,
    scope,
    connection: { stage: "open", ms: 4 },
    server: { ...HEALTHY, ...server },
  };
}

/** The row of that name; there must be one. */
export function row(name: string, server: Partial<Server>, scope?: string): Check {
  const checks = judgePostgres(factsOf(server, scope));
  const found = checks.filter((check) => check.name === name);
  if (found.length !== 1)
    throw new Error(`${found.length} rows "${name}" in ${checks.map((one) => one.name).join(", ")}`);
  return found[0]!;
}
