// What the elector's session calls, as SQL for one schema name (quoted already).
//
//   tenure_wait ──▶ tenure_bump ──▶ tenure_beat … ──▶ tenure_resign ──▶ lock free
//
// All are single statements in autocommit. They run as their owner (SECURITY DEFINER), so that the caller needs no
// right on the tables, with a search_path that nobody can write to: names of ours are qualified instead.
//
// SQLSTATEs of our own: TN001 stale epoch (the fence), TN002 scope clash, TN003 the calling session does not hold the
// lock, TN004 the fence stayed busy, TN005 epochs are used up, TN006 a bad argument, TN007 a change to the state
// that would give an epoch out twice, TN008 the schema is newer than the library.

import { FENCE_GRACE_MS, FENCE_WAIT_MS_MAX, TRANSITIONS_KEPT, UNLOCKS_MAX } from "../limits.ts";

const DEFINER = "language plpgsql volatile security definer set search_path = pg_catalog, pg_temp";

export function electorFunctions(schema: string): string {
  return [
    helpers(schema),
    wait(schema),
    takeFence(schema),
    bump(schema),
    beat(schema),
    resign(schema),
    askResign(schema),
  ].join("");
}

function helpers(schema: string): string {
  // pg_locks shows the halves of a 64-bit key in classid and objid, with objsubid 1.
  return `
create or replace function ${schema}.tenure_lock_holders(p_key bigint)
returns table (pid integer, mode text, transaction text) language sql stable as $tenure$
  select l.pid, l.mode, l.virtualtransaction from pg_catalog.pg_locks l
  where l.locktype = 'advisory' and l.granted and l.objsubid = 1
    and l.classid::bigint = ((p_key >> 32) & 4294967295) and l.objid::bigint = (p_key & 4294967295)
    and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())
$tenure$;

create or replace function ${schema}.tenure_holds(p_key bigint) returns boolean
language sql stable as $tenure$
  select exists (select from ${schema}.tenure_lock_holders(p_key) l
    where l.pid = pg_catalog.pg_backend_pid() and l.mode = 'ExclusiveLock')
$tenure$;

create or replace function ${schema}.tenure_record(
  p_scope_key bigint, p_at timestamptz, p_epoch bigint, p_holder text, p_reason text, p_since timestamptz
) returns void language plpgsql volatile set search_path = pg_catalog, pg_temp as $tenure$
begin
  insert into ${schema}.tenure_transition (scope_key, at, epoch, holder_identity, reason, held_ms)
    values (p_scope_key, p_at, p_epoch, p_holder, p_reason,
      case when p_since is not null then greatest(0, round(extract(epoch from p_at - p_since) * 1000)) end);
  delete from ${schema}.tenure_transition t where t.scope_key = p_scope_key and t.id <= (
    select k.id from ${schema}.tenure_transition k where k.scope_key = p_scope_key
      order by k.id desc offset ${TRANSITIONS_KEPT} limit 1);
end $tenure$;
`;
}

/** The wait of a follower, until the session's lock_timeout: false. An error that is caught here is not in the server's log. */
function wait(schema: string): string {
  return `
create or replace function ${schema}.tenure_wait(p_scope_key bigint) returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp as $tenure$
begin
  perform pg_advisory_lock(p_scope_key);
  return true;
exception when lock_not_available then
  return false;
end $tenure$;
`;
}

/**
 * Waits in the fair queue for a short grace, ends the transactions that held the fence all that time, and queues again.
 * Leaving the queue lets the sharers after us in: those are not ended, for they mostly take a moment only. Nor is one who
 * holds it in exclusive mode, which no fenced transaction does: a role that may bump could end any session by its locks.
 */
function takeFence(schema: string): string {
  return `
create or replace function ${schema}.tenure_take_fence(p_scope text, p_fence bigint) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp set lock_timeout = '${FENCE_GRACE_MS}ms' as $tenure$
declare
  v_statement_ms constant numeric := extract(epoch from current_setting('statement_timeout')::interval) * 1000;
  v_until constant timestamptz := clock_timestamp() + interval '1 ms' * least(${FENCE_WAIT_MS_MAX}, 0.75 * nullif(v_statement_ms, 0));
  v_held text[];
  v_denied boolean := false;
  v_pid integer;
  v_left_ms integer;
  v_grace_ms integer := ${FENCE_GRACE_MS};
begin
  if pg_try_advisory_xact_lock(p_fence) then return; end if;
  loop
    v_held := array(select l.transaction from ${schema}.tenure_lock_holders(p_fence) l);
    begin
      perform pg_advisory_xact_lock(p_fence);
      return;
    exception when lock_not_available then
      null;
    end;
    v_left_ms := extract(epoch from v_until - clock_timestamp()) * 1000;
    if v_left_ms <= 0 then
      raise exception using errcode = 'TN004',
        message = format('the fence of scope "%s" is still held by transactions of an older epoch (process %s)', p_scope,
          (select coalesce(string_agg(coalesce(l.pid::text, 'none: it is prepared'), ', '), 'gone meanwhile')
            from ${schema}.tenure_lock_holders(p_fence) l)),
        hint = case when v_denied then 'the owner of this function may not end that session: grant it pg_signal_backend'
          else 'end that session, or commit or roll back what is prepared (pg_prepared_xacts)' end;
    end if;
    for v_pid in select l.pid from ${schema}.tenure_lock_holders(p_fence) l
        where l.transaction = any (v_held) and l.mode = 'ShareLock' and l.pid <> pg_backend_pid() loop
      begin
        perform pg_terminate_backend(v_pid);
      exception when insufficient_privilege then
        v_denied := true;
      end;
    end loop;
    -- Longer each time: a batch of transactions that take longer than one grace would be ended, and the next batch that got
    -- in meanwhile too. Whoever can't be ended is waited for without leaving the queue.
    v_grace_ms := case when v_denied then v_left_ms else least(v_grace_ms * 2, v_left_ms) end;
    perform set_config('lock_timeout', v_grace_ms || 'ms', true);
  end loop;
end $tenure$;
`;
}

/** Part of the bump: two scopes with one key, one scope with two, and a fence that would be another scope's lock. */
function clashes(schema: string): string {
  return `  if v_old.scope is distinct from p_scope then
    raise exception using errcode = 'TN002',
      message = case when v_old.scope is null
        then format('scope "%s" is stored with another lock key than %s: its instances would not see each other', p_scope, p_scope_key)
        else format('lock key %s of scope "%s" belongs to scope "%s"', p_scope_key, p_scope, v_old.scope) end,
      hint = 'all instances of a scope need one lock key, and no two scopes the same';
  end if;

  if exists (select from ${schema}.tenure_leader_state s where s.scope_key = ${schema}.tenure_fence_key(p_scope_key)) then
    raise exception using errcode = 'TN002',
      message = format('the fence key of scope "%s" is the lock key of another scope', p_scope),
      hint = 'give one of them another lock key';
  end if;
`;
}

function bump(schema: string): string {
  return `
create or replace function ${schema}.tenure_bump(
  p_scope_key bigint, p_scope text, p_identity text, p_metadata jsonb, p_channel text, p_idle_session_timeout_ms integer
) returns bigint ${DEFINER} as $tenure$
declare
  v_old ${schema}.tenure_leader_state%rowtype;
  v_beat ${schema}.tenure_heartbeat%rowtype;
  v_epoch bigint;
  v_timeline text;
  v_new bigint;
  v_then bigint;
  v_now timestamptz;
begin
  if coalesce(p_scope, '') = '' or coalesce(p_identity, '') = '' or coalesce(p_channel, '') = '' then
    raise exception using errcode = 'TN006', message = 'scope, identity and channel must not be empty';
  end if;
  if p_scope_key is null or not ${schema}.tenure_holds(p_scope_key) then
    raise exception using errcode = 'TN003',
      message = format('this session does not hold the lock %s of scope "%s"', p_scope_key, p_scope),
      hint = 'a pooler in transaction mode swaps sessions between statements: connect to Postgres itself';
  end if;
  -- An epoch that a crash takes back would be given out twice.
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;

  insert into ${schema}.tenure_leader_state (scope_key, scope) values (p_scope_key, p_scope) on conflict do nothing;
  select s.* into v_old from ${schema}.tenure_leader_state s where s.scope_key = p_scope_key;
${clashes(schema)}  perform ${schema}.tenure_take_fence(p_scope, ${schema}.tenure_fence_key(p_scope_key));
  -- A resignation frees the lock a moment before it commits: this waits for it.
  select s.* into strict v_old from ${schema}.tenure_leader_state s where s.scope_key = p_scope_key for update;
  select h.* into v_beat from ${schema}.tenure_heartbeat h where h.scope_key = p_scope_key;
  -- The timeline makes epochs of a promoted standby larger than any that its lost primary gave out (trap 38). pg_upgrade
  -- sets it back to 1, hence the second way: as many blocks of 2^32 further as timelines have passed since.
  v_timeline := left(pg_walfile_name(pg_current_wal_lsn()), 8);
  v_new := ('x' || v_timeline)::bit(32)::bigint;
  v_then := ('x' || v_old.timeline)::bit(32)::bigint;
  v_epoch := greatest(v_old.epoch + 1, (v_new - 1) * 4294967296 + 1, case when v_then <> v_new then
    ((v_old.epoch >> 32) + case when v_new > v_then then v_new - v_then else v_new end) * 4294967296 + 1 end);
  if v_epoch > 9007199254740991 then
    raise exception using errcode = 'TN005', message = format('scope "%s" has used up its epochs', p_scope);
  end if;

  v_now := clock_timestamp();
  if v_old.holder_identity <> '' then
    perform ${schema}.tenure_record(p_scope_key, coalesce(v_beat.last_heartbeat, v_old.acquired_at), v_old.epoch,
      v_old.holder_identity, case when v_beat.resign_epoch = v_old.epoch then 'asked' else 'lost' end::text, v_old.acquired_at);
  end if;
  perform ${schema}.tenure_record(p_scope_key, v_now, v_epoch, p_identity, 'acquired'::text,
    null::timestamptz);
  update ${schema}.tenure_leader_state set epoch = v_epoch, timeline = v_timeline, holder_identity = p_identity,
    metadata = coalesce(p_metadata, '{}'), acquired_at = v_now, channel = p_channel where scope_key = p_scope_key;
  insert into ${schema}.tenure_heartbeat as h (scope_key, epoch, last_heartbeat) values (p_scope_key, v_epoch, v_now)
    on conflict (scope_key) do update set epoch = v_epoch, last_heartbeat = v_now;
  -- The waiter's own was shorter. This one takes effect when the answer to this statement has left.
  if p_idle_session_timeout_ms is not null then
    perform set_config('idle_session_timeout', p_idle_session_timeout_ms::text, false);
  end if;
  return v_epoch;
end $tenure$;
`;
}

function beat(schema: string): string {
  return `
create or replace function ${schema}.tenure_beat(p_scope_key bigint, p_epoch bigint) returns text ${DEFINER} as $tenure$
declare
  v_resign bigint;
begin
  -- A standby grants the same locks, and they mean nothing there (trap 37).
  if pg_is_in_recovery() then return 'read-only'; end if;
  if not exists (select from ${schema}.tenure_leader_state s
      where s.scope_key = p_scope_key and s.epoch = p_epoch and s.holder_identity <> '') then
    return 'superseded';
  end if;
  if not ${schema}.tenure_holds(p_scope_key) then return 'unlocked'; end if;
  -- Nothing rests on a heartbeat's durability: a crash of the server ends the session, and with it the term.
  perform set_config('synchronous_commit', 'off', true);
  -- The lock is the proof. A row that somebody else has locked is not waited for: other scopes' beats may come behind.
  update ${schema}.tenure_heartbeat h set last_heartbeat = clock_timestamp()
    from (select l.scope_key from ${schema}.tenure_heartbeat l
      where l.scope_key = p_scope_key and l.epoch = p_epoch for update skip locked) free
    where h.scope_key = free.scope_key returning h.resign_epoch into v_resign;
  if not found then
    select h.resign_epoch into v_resign from ${schema}.tenure_heartbeat h where h.scope_key = p_scope_key;
  end if;
  return case when v_resign = p_epoch then 'resign' else 'held' end;
end $tenure$;
`;
}

function resign(schema: string): string {
  return `
create or replace function ${schema}.tenure_resign(p_scope_key bigint, p_epoch bigint, p_reason text) returns boolean
${DEFINER} as $tenure$
declare
  v_old ${schema}.tenure_leader_state%rowtype;
  v_ours boolean;
  v_asked boolean;
begin
  if p_reason is null or p_reason not in ('resigned', 'asked') then
    raise exception using errcode = 'TN006', message = 'reason must be resigned or asked';
  end if;
  if not ${schema}.tenure_holds(p_scope_key) then return false; end if;
  select s.* into v_old from ${schema}.tenure_leader_state s where s.scope_key = p_scope_key for update;
  v_ours := coalesce(v_old.epoch = p_epoch and v_old.holder_identity <> '', false);
  if v_ours then
    v_asked := exists (select from ${schema}.tenure_heartbeat h
      where h.scope_key = p_scope_key and h.resign_epoch = p_epoch);
    perform ${schema}.tenure_record(p_scope_key, clock_timestamp(), p_epoch, v_old.holder_identity,
      case when v_asked then 'asked' else p_reason end, v_old.acquired_at);
    update ${schema}.tenure_leader_state set holder_identity = '', metadata = '{}' where scope_key = p_scope_key;
  end if;
  -- Locks stack, and one unlock frees one of them (trap 40). The next leader gets the lock here, and its bump waits
  -- for the row until this has committed.
  for i in 1 .. ${UNLOCKS_MAX} loop
    if not ${schema}.tenure_holds(p_scope_key) then return v_ours; end if;
    perform pg_advisory_unlock(p_scope_key);
  end loop;
  raise exception using errcode = 'TN003',
    message = format('lock %s is still held after ${UNLOCKS_MAX} unlocks', p_scope_key), hint = 'end this session';
end $tenure$;
`;
}

function askResign(schema: string): string {
  return `
create or replace function ${schema}.tenure_ask_resign(p_scope text, p_force boolean)
returns table (epoch bigint, holder_identity text, terminated integer) ${DEFINER} as $tenure$
declare
  v_row ${schema}.tenure_leader_state%rowtype;
  v_pid integer;
begin
  select s.* into v_row from ${schema}.tenure_leader_state s where s.scope = p_scope and s.holder_identity <> '';
  if not found then return; end if;
  update ${schema}.tenure_heartbeat h set resign_epoch = v_row.epoch
    where h.scope_key = v_row.scope_key and h.epoch = v_row.epoch;
  if not found then return; end if;
  epoch := v_row.epoch;
  holder_identity := v_row.holder_identity;
  terminated := 0;
  if p_force then
    -- A loop, for a WHERE has no order: the caller itself could be ended before it is left out.
    for v_pid in select l.pid from ${schema}.tenure_lock_holders(v_row.scope_key) l
        where l.mode = 'ExclusiveLock' and l.pid <> pg_backend_pid() loop
      begin
        if pg_terminate_backend(v_pid) then terminated := terminated + 1; end if;
      exception when insufficient_privilege then
        raise exception using errcode = '42501',
          message = format('the owner of this function may not end process %s, which leads scope "%s"', v_pid, p_scope),
          hint = 'grant pg_signal_backend to that owner, or ask without force: the leader steps down by itself';
      end;
    end loop;
  end if;
  return next;
end $tenure$;
`;
}
