// The tables of the Postgres backend, as SQL for one schema name (quoted already).
//
// - tenure_leader_state: one row for each scope, for ever. The epoch only grows, key and name never change, the row
//   is never deleted (trap 43): a trigger refuses all of that to anybody, the owner of the table included.
// - tenure_heartbeat: what is written every second, in a row of its own. Fenced transactions above READ COMMITTED
//   lock the row of the state; a heartbeat there would wait for them (trap 36). An operator's wish that the leader
//   step down is here for the same reason.
// - tenure_transition: the last 100 of each scope, trimmed as new ones come.
// - tenure_schema_version: one row for each migration that was applied; see schema.ts for the rule.
//
// One NOTIFY for each change of epoch or holder, by trigger, never for a heartbeat (trap 46). Its channel is a column
// of the state, set by each bump: so it is configurable, and a resignation or an operator's update uses the same one
// without being told.

export const DEFAULT_CHANNEL = "tenure_leader_change";

/** Migration 1, inside a DO block; the trigger functions exist already. */
export function tables(schema: string): string {
  return `
    create table ${schema}.tenure_leader_state (
      scope_key bigint primary key,
      scope text not null unique,
      epoch bigint not null default 0 check (epoch between 0 and 9007199254740991),
      holder_identity text not null default '',
      metadata jsonb not null default '{}',
      acquired_at timestamptz,
      timeline text,
      channel text not null default '${DEFAULT_CHANNEL}'
    );
    create table ${schema}.tenure_heartbeat (
      scope_key bigint primary key references ${schema}.tenure_leader_state,
      epoch bigint not null,
      last_heartbeat timestamptz not null,
      resign_epoch bigint not null default 0
    ) with (fillfactor = 50);
    create table ${schema}.tenure_transition (
      scope_key bigint not null references ${schema}.tenure_leader_state,
      id bigint generated always as identity,
      at timestamptz not null,
      epoch bigint not null,
      holder_identity text not null,
      reason text not null check (reason in ('acquired', 'resigned', 'asked', 'lost')),
      held_ms bigint,
      primary key (scope_key, id)
    );
    create trigger tenure_guard_row before update or delete on ${schema}.tenure_leader_state
      for each row execute function ${schema}.tenure_guard();
    create trigger tenure_guard_table before truncate on ${schema}.tenure_leader_state
      for each statement execute function ${schema}.tenure_guard();
    create trigger tenure_notify after update on ${schema}.tenure_leader_state
      for each row when (old.epoch <> new.epoch or old.holder_identity <> new.holder_identity)
      execute function ${schema}.tenure_notify();`;
}

export function triggerFunctions(schema: string): string {
  return `
create or replace function ${schema}.tenure_guard() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $tenure$
begin
  if tg_op <> 'UPDATE' then
    raise exception using errcode = 'TN007',
      message = 'the rows of tenure_leader_state are never deleted: an epoch would be given out a second time',
      hint = 'a scope that nobody campaigns for costs nothing; leave its row where it is';
  end if;
  if new.epoch < old.epoch or new.scope_key <> old.scope_key or new.scope <> old.scope then
    raise exception using errcode = 'TN007',
      message = format('epoch, key and name of scope "%s" only change by tenure_bump: an epoch never goes down', old.scope);
  end if;
  return new;
end $tenure$;

create or replace function ${schema}.tenure_notify() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $tenure$
begin
  perform pg_notify(new.channel, new.scope_key || ':' || new.epoch);
  return null;
end $tenure$;
`;
}
