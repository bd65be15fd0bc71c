// The doctor's judgement over settings that a role, a database or the server brings into each session. Pure. Leaders set
// their own timeouts once they are connected; what matters here is what they do not set, what is in force before, and
// what your own fenced transactions run with.

import type { PostgresSettings } from "../../electors/postgres/index.ts";
import { STATEMENT_MS_MIN } from "./limits.ts";
import { quoteName, type Server, type Setting } from "./postgres.ts";
import { type Check, ok, problem, warning } from "./report.ts";

type Configured = ReadonlyMap<string, Setting>;
type Who = Pick<Server, "role" | "database">;

const PRESET_TIMEOUTS = [
  "statement_timeout",
  "lock_timeout",
  "idle_session_timeout",
  "idle_in_transaction_session_timeout",
] as const;

/** Asked of pg_settings. */
export const SETTING_NAMES = [
  ...PRESET_TIMEOUTS,
  "transaction_timeout",
  "default_transaction_read_only",
  "default_transaction_isolation",
  "synchronous_commit",
  "fsync",
  "full_page_writes",
  "tcp_keepalives_idle",
  "tcp_keepalives_interval",
  "tcp_keepalives_count",
] as const;

export function judgeSettings(configured: Configured, who: Who, session: PostgresSettings["session"]): Check[] {
  return [
    readOnly(configured, who),
    isolation(configured, who),
    presets(configured, who),
    transactionTimeout(configured, who, session.lockMs),
    keepalives(configured),
    ...durability(configured, who),
  ];
}

function readOnly(configured: Configured, who: Who): Check {
  const setting = configured.get("default_transaction_read_only");
  if (setting?.value !== "on") return ok("writable", "transactions may write by default");
  return problem("writable", `default_transaction_read_only is on (${setting.source})`, {
    means: "no epoch can be raised: nobody leads",
    ...undo("default_transaction_read_only", setting, who, "off"),
  });
}

function isolation(configured: Configured, who: Who): Check {
  const setting = configured.get("default_transaction_isolation");
  if (setting === undefined || setting.value.startsWith("read ")) return ok("isolation", "read committed by default");
  return warning("isolation", `default_transaction_isolation is ${setting.value} (${setting.source})`, {
    means: "a take-over may have to be tried twice (40001), and fenced transactions lock the scope's row",
    ...undo("default_transaction_isolation", setting, who, "'read committed'"),
  });
}

function presets(configured: Configured, who: Who): Check {
  const set = PRESET_TIMEOUTS.flatMap((name) => {
    const setting = configured.get(name);
    return setting === undefined || setting.value === "0" ? [] : [{ name, setting }];
  });
  const seen = set.map(({ name, setting }) => `${name} ${setting.value} ms (${setting.source})`).join(", ");
  const statement = set.find(({ name }) => name === "statement_timeout");
  if (statement !== undefined && Number(statement.setting.value) < STATEMENT_MS_MIN) {
    return problem("preset timeouts", seen, {
      means: `statement_timeout ends what a session does before it sets its own: with less than ${STATEMENT_MS_MIN} ms it may never campaign`,
      ...undo("statement_timeout", statement.setting, who, "0"),
    });
  }
  const note = "; leaders set their own, your fenced transactions run with these";
  return ok("preset timeouts", set.length === 0 ? "none" : seen + note);
}

/** Not among what leaders set: it ends the whole session, also one that only waits for the lock. */
function transactionTimeout(configured: Configured, who: Who, lockMs: number): Check {
  const setting = configured.get("transaction_timeout");
  const ms = Number(setting?.value ?? 0);
  if (setting === undefined || ms === 0) return ok("transaction timeout", "none");
  const seen = `transaction_timeout ${ms} ms (${setting.source})`;
  if (ms > lockMs) return ok("transaction timeout", seen);
  return problem("transaction timeout", seen, {
    means: `it ends the session of whoever waits for the lock, which takes up to ${lockMs} ms at a time: nobody waits in the queue`,
    ...undo("transaction_timeout", setting, who, "0"),
  });
}

function keepalives(configured: Configured): Check {
  const value = (name: string): string => configured.get(name)?.value ?? "?";
  const seen = `tcp_keepalives_idle ${value("tcp_keepalives_idle")} s, interval ${value("tcp_keepalives_interval")} s, count ${value("tcp_keepalives_count")}`;
  return ok("keepalives", `${seen}; a leader does not depend on them`);
}

function durability(configured: Configured, who: Who): Check[] {
  const off = ["fsync", "full_page_writes"].flatMap((name) => {
    const setting = configured.get(name);
    return setting?.value === "off" ? [{ name, setting }] : [];
  });
  const disk =
    off.length === 0
      ? ok("durability", "fsync and full_page_writes are on")
      : warning("durability", off.map(({ name, setting }) => `${name} is off (${setting.source})`).join(", "), {
          means: "a crash of the machine may take back an epoch that was given out, and your writes with it",
          ...merged(off.map(({ name, setting }) => undo(name, setting, who, "on"))),
        });
  const commit = configured.get("synchronous_commit");
  if (commit?.value !== "off") return [disk, ok("synchronous commit", commit?.value ?? "on")];
  return [
    disk,
    warning("synchronous commit", `synchronous_commit is off (${commit.source})`, {
      means:
        "epochs are committed in full all the same; your own writes may be lost in a crash after they were confirmed",
      ...undo("synchronous_commit", commit, who, "on"),
    }),
  ];
}

/** The statements that undo a setting where it was made. `good` is what the server's configuration should say. */
export function undo(name: string, { source }: Setting, who: Who, good: string): { sql: string[]; advice?: string } {
  const role = quoteName(who.role);
  const database = quoteName(who.database);
  switch (source) {
    case "user":
      return { sql: [`alter role ${role} reset ${name};`] };
    case "database":
      return { sql: [`alter database ${database} reset ${name};`] };
    case "database user":
      return { sql: [`alter role ${role} in database ${database} reset ${name};`] };
    case "global":
      return { sql: [`alter role all reset ${name};`] };
    case "configuration file":
      return { sql: [`alter system set ${name} = ${good};`, "select pg_reload_conf();"] };
    case "client":
      return { sql: [], advice: `It comes from the URL ("options") or from PGOPTIONS: remove ${name} there.` };
    default:
      return { sql: [], advice: `It comes from "${source}": change ${name} there, to ${good}.` };
  }
}

function merged(undone: readonly { sql: string[]; advice?: string }[]): { sql: string[]; advice: string } {
  const sql = [...new Set(undone.flatMap((one) => one.sql))];
  // One reload, after everything that is set.
  const reload = "select pg_reload_conf();";
  const ordered = sql.includes(reload) ? [...sql.filter((one) => one !== reload), reload] : sql;
  return {
    sql: ordered,
    advice: undone
      .map((one) => one.advice ?? "")
      .filter((text) => text !== "")
      .join(" "),
  };
}
