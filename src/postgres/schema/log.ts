// The tables and functions of the log in Postgres (src/logs/postgres), as SQL for one schema name (quoted already). They
// stand here because one script installs everything (schema.ts).
//
// - tenure_log_head: one row for each log, for ever. Its epoch, `opened` and position only grow: a trigger refuses all else
//   to anybody, the owner included (trap 43). Whoever writes holds this row until the end of its transaction, so opening
//   and appending take turns, and an append that an open waited for is in the head that the open tells.
// - `opened` counts the opens. An append names the open that it belongs to, so one that got stuck on its way (trap 66)
//   can't arrive later in an epoch that its leader has opened again meanwhile.
// - `site`: whose log this is, for ever; it names the author of the chain of events that the log holds (design D13).
// - `timeline`: a promoted standby may lack what was committed on its primary. Appends of an epoch that was opened before
//   the promotion are refused there.
// - tenure_log: the records. They never change; they are deleted after a snapshot, oldest first, and `first` says so.
// - tenure_log_snapshot: in parts, by the epoch that saved it; the head names the one that is complete.
// - tenure_inbox: what users submit inside their own transactions, for the log that it names. A row is deleted in the
//   transaction that appends what became of it, so it is taken over exactly once.
//
// One NOTIFY for each append, with the log's name, epoch and position (trap 46); one for each transaction that submits,
// because Postgres merges those that are alike. A submission reads nothing: whether the inbox is empty would be a read of all of
// it, which makes strangers' SERIALIZABLE transactions fail, and passes over every dead row while an old snapshot is open.
// SQLSTATEs of our own: TN006 a bad argument, TN007 a change that would take back what was said, TN009 a submission that
// somebody else has taken, TN010 a row beyond the log's end that no function has written.

import { INTEGER_MAX, JOB_NAME_BYTES_MAX, JSON_DEPTH_MAX } from "../../core/kit/limits.ts";
import { SUBMISSION_BYTES_MAX } from "../limits.ts";

/** Payload: `<log>:<epoch>:<position>`. */
const LOG_CHANNEL = "tenure_log";
/** Payload: the log's name. */
const INBOX_CHANNEL = "tenure_inbox";

export const LOG_TABLES = ["tenure_log_head", "tenure_log", "tenure_log_snapshot", "tenure_inbox"] as const;

/** What a log's session calls. */
export const LOG_ROUTINES = {
  tenure_log_open: "text, bigint",
  tenure_log_append: "text, bigint, bigint, bigint, bytea, integer[], uuid[]",
  tenure_log_save: "text, bigint, bigint, bigint, integer, bytea, boolean",
  tenure_log_trim: "text, bigint, bigint, bigint, integer",
} as const;

/** What everybody may be granted, to submit. */
export const SUBMIT_ROUTINES = { tenure_submit: "text, jsonb, jsonb, text" } as const;
export const LOG_INTERNAL_ROUTINES = { tenure_log_guard: "" } as const;

const DEFINER = "language plpgsql volatile security definer set search_path = pg_catalog, pg_temp";
const TIMELINE = "left(pg_walfile_name(pg_current_wal_lsn()), 8)";
/** As the API wants a kind and a payload (contract/jobs/requests.ts): a test compares. */
const KIND = `^[A-Za-z0-9][A-Za-z0-9._:-]{0,${JOB_NAME_BYTES_MAX - 1}}$`;
/** Strict: otherwise a list is taken for its items. */
const TOO_DEEP = `strict $.**{${JSON_DEPTH_MAX} to last} ? (@.type() == "array" || @.type() == "object")`;
const TOO_LARGE_NUMBER = `strict $.** ? (@.type() == "number" && (@ > ${INTEGER_MAX} || @ < -${INTEGER_MAX}))`;
/** Without so many digits in a row there is no such number. */
const MANY_DIGITS = `[0-9]{${String(INTEGER_MAX).length}}`;
const LOG_NAME = "^[a-z0-9][a-z0-9_-]{0,62}$";

/** Migration 2, inside a DO block; the trigger function exists already. */
export function logTables(schema: string): string {
  return `
    create table ${schema}.tenure_log_head (
      log text primary key check (octet_length(log) between 1 and 63),
      epoch bigint not null default 0 check (epoch between 0 and 9007199254740991),
      opened bigint not null default 0,
      position bigint not null default 0 check (position between 0 and 9007199254740991),
      first bigint not null default 1 check (first between 1 and position + 1),
      snapshot_position bigint not null default 0,
      snapshot_epoch bigint not null default 0,
      timeline text not null default '',
      site uuid not null default gen_random_uuid()
    ) with (fillfactor = 50);
    create table ${schema}.tenure_log (
      log text not null,
      position bigint not null,
      epoch bigint not null,
      data bytea not null,
      primary key (log, position)
    );
    create table ${schema}.tenure_log_snapshot (
      log text not null,
      epoch bigint not null,
      position bigint not null,
      part integer not null,
      data bytea not null,
      primary key (log, epoch, position, part)
    );
    create table ${schema}.tenure_inbox (
      log text not null,
      number bigint generated always as identity,
      id uuid not null unique default gen_random_uuid(),
      kind text not null,
      payload jsonb not null,
      options jsonb not null,
      submitted_at timestamptz not null default clock_timestamp(),
      submitted_by text not null default session_user,
      primary key (log, number)
    );
    create trigger tenure_log_guard_row before update on ${schema}.tenure_log_head for each row
      when (new.log <> old.log or new.epoch < old.epoch or new.opened < old.opened or new.position < old.position
        or new.first < old.first or new.snapshot_position < old.snapshot_position or new.site <> old.site)
      execute function ${schema}.tenure_log_guard();
    create trigger tenure_log_guard_delete before delete on ${schema}.tenure_log_head
      for each row execute function ${schema}.tenure_log_guard();
    create trigger tenure_log_guard_table before truncate on ${schema}.tenure_log_head
      for each statement execute function ${schema}.tenure_log_guard();
    create trigger tenure_log_guard_record before update on ${schema}.tenure_log
      for each row execute function ${schema}.tenure_log_guard();
    create trigger tenure_log_guard_records before truncate on ${schema}.tenure_log
      for each statement execute function ${schema}.tenure_log_guard();`;
}

export function logTriggerFunction(schema: string): string {
  return `
create or replace function ${schema}.tenure_log_guard() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $tenure$
begin
  raise exception using errcode = 'TN007',
    message = format('%s of %s refused: a log''s head only goes up and stays, and its records never change',
      lower(tg_op), tg_table_name),
    hint = 'records are deleted behind a snapshot by tenure_log_trim alone; to start anew, use another name for the log';
end $tenure$;
`;
}

export function logFunctions(schema: string): string {
  return [open(schema), append(schema), save(schema), trim(schema), submit(schema)].join("");
}

/** Raises the fence. The update waits for an append under way, and then sees what it has committed. */
function open(schema: string): string {
  return `
create or replace function ${schema}.tenure_log_open(p_log text, p_epoch bigint,
  out taken boolean, out in_epoch bigint, out at_opened bigint, out at_position bigint
) ${DEFINER} as $tenure$
begin
  if p_log is null or p_epoch is null or p_epoch < 1 then
    raise exception using errcode = 'TN006', message = 'a log has a name, and an epoch is a positive integer';
  end if;
  insert into ${schema}.tenure_log_head (log) values (p_log) on conflict do nothing;
  update ${schema}.tenure_log_head h set epoch = p_epoch, opened = h.opened + 1, timeline = ${TIMELINE}
    where h.log = p_log and h.epoch <= p_epoch
    returning true, h.epoch, h.opened, h.position into taken, in_epoch, at_opened, at_position;
  if not found then
    select false, h.epoch, h.opened, h.position into taken, in_epoch, at_opened, at_position
      from ${schema}.tenure_log_head h where h.log = p_log;
    return;
  end if;
  perform pg_notify('${LOG_CHANNEL}', p_log || ':' || in_epoch || ':' || at_position);
end $tenure$;
`;
}

/**
 * The records come as one text of bytes and their lengths: an array of bytea would cross the wire in hexadecimal. The guard is
 * the WHERE of one update; whoever fails it has written nothing.
 */
function append(schema: string): string {
  return `
create or replace function ${schema}.tenure_log_append(p_log text, p_epoch bigint, p_opened bigint, p_after bigint,
  p_data bytea, p_lengths integer[], p_taken uuid[],
  out taken boolean, out in_epoch bigint, out at_opened bigint, out at_position bigint
) ${DEFINER} as $tenure$
declare
  v_end constant bigint := p_after + cardinality(p_lengths);
  v_count bigint;
begin
  if (select count(*) = 0 or count(*) <> count(l.length) or min(l.length) < 0 or sum(l.length) <> octet_length(p_data)
      from unnest(p_lengths) as l (length)) is not false then
    raise exception using errcode = 'TN006',
      message = format('the lengths of the records must be there, and add up to the %s bytes that came with them',
        coalesce(octet_length(p_data)::text, 'missing'));
  end if;
  update ${schema}.tenure_log_head h set position = v_end
    where h.log = p_log
      and h.epoch = p_epoch and h.opened = p_opened
      and h.position = p_after
      and h.timeline = ${TIMELINE};
  if not found then
    taken := false;
    select h.epoch, h.opened, h.position into in_epoch, at_opened, at_position
      from ${schema}.tenure_log_head h where h.log = p_log;
    return;
  end if;
  insert into ${schema}.tenure_log (log, position, epoch, data)
    select p_log, p_after + r.at, p_epoch, substr(p_data, r.ends - r.length + 1, r.length)
    from (select l.at, l.length, (sum(l.length) over (order by l.at))::integer as ends
      from unnest(p_lengths) with ordinality as l (length, at)) r
    on conflict do nothing;
  get diagnostics v_count = row_count;
  if v_count <> cardinality(p_lengths) then
    raise exception using errcode = 'TN010',
      message = format('log "%s" ends at %s, and its table has rows beyond that: somebody has written them by hand', p_log, p_after),
      hint = format('nothing was written; as the owner: delete from ${schema}.tenure_log where log = %L and position > %s', p_log, p_after);
  end if;
  if p_taken is not null then
    delete from ${schema}.tenure_inbox i where i.id = any (p_taken) and i.log = p_log;
    get diagnostics v_count = row_count;
    if v_count <> cardinality(p_taken) then
      raise exception using errcode = 'TN009',
        message = format('%s of %s submissions were taken by somebody else', cardinality(p_taken) - v_count, cardinality(p_taken)),
        hint = 'nothing was written; look into the inbox again';
    end if;
  end if;
  perform pg_notify('${LOG_CHANNEL}', p_log || ':' || p_epoch || ':' || v_end);
  taken := true;
  in_epoch := p_epoch;
  at_opened := p_opened;
  at_position := v_end;
end $tenure$;
`;
}

/** Stores one part of a snapshot; the last one makes it the log's, and deletes all others. False: the epoch is over. */
function save(schema: string): string {
  return `
create or replace function ${schema}.tenure_log_save(p_log text, p_epoch bigint, p_opened bigint, p_position bigint,
  p_part integer, p_data bytea, p_last boolean
) returns boolean ${DEFINER} as $tenure$
begin
  if not exists (select from ${schema}.tenure_log_head h where h.log = p_log and h.epoch = p_epoch
      and h.opened = p_opened and h.position >= p_position and h.snapshot_position < p_position) then
    return false;
  end if;
  insert into ${schema}.tenure_log_snapshot as s (log, epoch, position, part, data)
    values (p_log, p_epoch, p_position, p_part, p_data)
    on conflict on constraint tenure_log_snapshot_pkey do update set data = excluded.data;
  if not p_last then return true; end if;
  update ${schema}.tenure_log_head h set snapshot_position = p_position, snapshot_epoch = p_epoch
    where h.log = p_log and h.epoch = p_epoch and h.opened = p_opened and h.snapshot_position < p_position;
  if not found then return false; end if;
  delete from ${schema}.tenure_log_snapshot s where s.log = p_log
    and (s.epoch <> p_epoch or s.position <> p_position or s.part > p_part);
  return true;
end $tenure$;
`;
}

/**
 * Deletes at most so many records below `p_below`, never past the snapshot, and tells the first one that is left. The head's
 * row comes last: appends wait for whoever has it.
 */
function trim(schema: string): string {
  return `
create or replace function ${schema}.tenure_log_trim(p_log text, p_epoch bigint, p_opened bigint, p_below bigint, p_max integer)
returns bigint ${DEFINER} as $tenure$
declare
  v_first bigint := (select greatest(h.first, least(p_below, h.snapshot_position + 1, h.first + p_max))
    from ${schema}.tenure_log_head h where h.log = p_log);
begin
  delete from ${schema}.tenure_log r where r.log = p_log and r.position < v_first;
  update ${schema}.tenure_log_head h set first = v_first
    where h.log = p_log and h.epoch = p_epoch and h.opened = p_opened and h.first <= v_first;
  if not found then
    raise exception using errcode = 'TN001', message = format('epoch %s of log "%s" is over', p_epoch, p_log),
      hint = 'nothing was deleted; the present leader does that';
  end if;
  return v_first;
end $tenure$;
`;
}

/** What can be known to be wrong is refused here, where whoever submits it can still do something about it. */
function submit(schema: string): string {
  return `
create or replace function ${schema}.tenure_submit(p_kind text, p_payload jsonb, p_options jsonb default '{}', p_log text default 'jobs')
returns uuid ${DEFINER} as $tenure$
declare
  v_text text := p_payload::text;
  v_mistake text := case
    when p_kind is null or p_kind !~ '${KIND}' then
      'kind must be 1 to ${JOB_NAME_BYTES_MAX} letters, digits, ".", "_", ":" and "-", and begin with a letter or digit'
    when p_log is null or p_log !~ '${LOG_NAME}' then
      'log must be 1 to 63 lower-case letters, digits, "_" and "-", and begin with a letter or digit'
    when p_options is null or jsonb_typeof(p_options) <> 'object' then 'options must be a JSON object'
    when p_payload is null then 'payload must not be NULL; for none, write ''null''::jsonb'
    when octet_length(v_text) + octet_length(p_options::text) > ${SUBMISSION_BYTES_MAX} then
      'payload and options must not have more than ${SUBMISSION_BYTES_MAX} bytes together: store what is large in a table of your own, and submit its key'
    when jsonb_path_exists(p_payload, '${TOO_DEEP}') then
      'payload must have at most ${JSON_DEPTH_MAX} levels of lists and objects'
    when v_text ~ '${MANY_DIGITS}' and jsonb_path_exists(p_payload, '${TOO_LARGE_NUMBER}') then
      'payload must have no number beyond 2^53 - 1: send it as a text'
    end;
  v_id uuid;
begin
  if v_mistake is not null then
    raise exception using errcode = 'TN006', message = 'tenure_submit: ' || v_mistake, hint = 'nothing was submitted';
  end if;
  insert into ${schema}.tenure_inbox (log, kind, payload, options) values (p_log, p_kind, p_payload, p_options)
    returning id into v_id;
  perform pg_notify('${INBOX_CHANNEL}', p_log);
  return v_id;
end $tenure$;
`;
}
