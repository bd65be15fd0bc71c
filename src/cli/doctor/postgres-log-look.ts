// Looks at the log that servers keep in Postgres, for the doctor. What the role may not read is left out, and said.

import { SCHEMA_MS_MAX } from "../../postgres/limits.ts";
import type { Line } from "../../postgres/line.ts";
import { checkSchema } from "../../postgres/schema/schema.ts";
import { LOG_HEADS_MAX } from "./limits.ts";
import { quoteName, type LogFacts } from "./postgres.ts";
import { grantsFor } from "./postgres-schema.ts";

const TRIGGERS: Readonly<Record<string, string>> = {
  tenure_log_guard_row: "tenure_log_head",
  tenure_log_guard_delete: "tenure_log_head",
  tenure_log_guard_table: "tenure_log_head",
  tenure_log_guard_record: "tenure_log",
  tenure_log_guard_records: "tenure_log",
};

export async function lookAtLog(line: Line, schema: string): Promise<LogFacts> {
  const state = await line.aloneLimited((session) => checkSchema(session, schema, "log"), SCHEMA_MS_MAX);
  const denied = "denied" in state ? state.denied : [];
  const isReadable = "denied" in state && !denied.some((what) => /^(schema|table) /.test(what));
  const triggers = await triggersOf(line, schema);
  const nothing = { heads: [], inbox: { count: 0, oldestMs: null }, strays: [], nodes: [] };
  return {
    isReadable,
    denied: await grantsFor(line, schema, denied),
    triggersOff: triggers.filter((one) => !one.on),
    triggersMissing: Object.keys(TRIGGERS).filter((name) => !triggers.some((one) => one.name === name)),
    ...(isReadable ? await rowsOf(line, quoteName(schema)) : nothing),
  };
}

async function triggersOf(line: Line, schema: string): Promise<{ name: string; table: string; on: boolean }[]> {
  return line.ask<{ name: string; table: string; on: boolean }>(
    `
select t.tgname::text as name, c.relname::text as table, t.tgenabled in ('O', 'A') as on
from pg_catalog.pg_trigger t join pg_catalog.pg_class c on c.oid = t.tgrelid
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1::text and t.tgname = any($2::text[]) order by 1`,
    [schema, Object.keys(TRIGGERS)],
  );
}

async function rowsOf(line: Line, at: string): Promise<Pick<LogFacts, "heads" | "inbox" | "strays" | "nodes">> {
  const heads = await line.ask<LogFacts["heads"][number]>(`
select h.log, h.epoch::float8 as epoch, h.position::float8 as position, h.first::float8 as first,
  h.snapshot_position::float8 as snapshot,
  h.position < h.first or (
    exists (select from ${at}.tenure_log r where r.log = h.log and r.position = h.position)
    and exists (select from ${at}.tenure_log r where r.log = h.log and r.position = h.first)) as "isWhole"
from ${at}.tenure_log_head h order by h.log limit ${LOG_HEADS_MAX}`);
  const [inbox] = await line.ask<LogFacts["inbox"]>(`
select count(*)::integer as count,
  (extract(epoch from clock_timestamp() - min(i.submitted_at)) * 1000)::float8 as "oldestMs"
from ${at}.tenure_inbox i join ${at}.tenure_log_head h on h.log = i.log`);
  const strays = await line.ask<LogFacts["strays"][number]>(`
select i.log, count(*)::integer as count from ${at}.tenure_inbox i
where not exists (select from ${at}.tenure_log_head h where h.log = i.log) group by i.log order by i.log limit ${LOG_HEADS_MAX}`);
  const nodes = await line.ask<LogFacts["nodes"][number]>(`
select n.node, n.url, (extract(epoch from clock_timestamp() - n.last_seen) * 1000)::float8 as "silentMs"
from ${at}.tenure_node n order by n.node limit 100`);
  return { heads, inbox: inbox ?? { count: 0, oldestMs: null }, strays, nodes };
}
