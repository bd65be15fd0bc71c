// The fence as SQL, called inside the transaction that writes: the function `tenure_require_epoch(scope, epoch)` for
// everybody, in any language, and the procedure `tenure_fence(lock key, epoch)` for `term.tx` and `term.fence`. Both do the
// same, and the procedure leaves a mark in the transaction, which `term.fence` reads (electors/postgres/fence/proof.ts).
//
// - They hold the fence key in shared mode until that transaction ends, and only then read the row. The bump takes the
//   same key in exclusive mode before it raises the epoch. So either this transaction ends before the bump, or it
//   sees what the bump has committed.
// - The wait for an advisory lock is a fair queue: those who come after a waiting bump wait behind it. Sharers of a
//   row lock would pass it, for seconds (trap 36).
// - READ COMMITTED: each statement of a VOLATILE function has a snapshot of its own, so a plain read after the lock
//   is enough. Above, the snapshot is older than the lock: the row is locked FOR SHARE, and an epoch that was raised
//   meanwhile is a serialization failure (40001), whose retry meets TN001. docs/decisions/0007-fence-row-lock.md.
// - They refuse (TN001) an epoch that is not in force, a scope that is not known, a term that was resigned although
//   nobody has followed yet, and NULL for either.
// - They refuse an epoch of another timeline: a promoted standby may lack the bump that ended it.
// - ROLLBACK TO a savepoint that is older than the call releases the key: call it outside of savepoints.
// - A client that is gone is noticed within 200 ms, also in the middle of a statement: its successor need not wait
//   for an answer that nobody reads (trap 49b). Whether the platform can do that is tried when this is installed.
//
// Every fenced transaction pays for this, so it is written for speed. CPU of the backend for BEGIN, fence and COMMIT,
// best of six, on Postgres 15: 50 us without a fence, 67 with `select 1` in its place, 122 for a function that looks
// the scope up, locks with PERFORM and reads the row; CALL saves the planner and the result set. Each expression is prepared
// again in each transaction, and each with a volatile or stable function takes a snapshot: so there are few, one for what comes
// before the lock's grant and one query for what comes after it.

/**
 * A setting that the procedure makes for its transaction. It lives as long as the lock: until the transaction ends, or is rolled
 * back to an older savepoint.
 */
export const MARK = "tenure.fence";
const CLIENT_CHECK = "client_connection_check_interval";

/** For one schema name, quoted already. */
export function fenceFunctions(schema: string, mask: bigint): string {
  return `
create or replace function ${schema}.tenure_fence_key(p_scope_key bigint) returns bigint
language sql immutable strict parallel safe as $tenure$ select p_scope_key # ${mask} $tenure$;

do $install$
declare
  v_check text := $check$case current_setting('${CLIENT_CHECK}')
        when '0' then set_config('${CLIENT_CHECK}', '200ms', true)
        else current_setting('${CLIENT_CHECK}') end$check$;
begin
  begin
    perform set_config('${CLIENT_CHECK}', '200ms', true);
    perform set_config('${CLIENT_CHECK}', '0', true);
  exception when others then
    v_check := $check$'200ms'$check$;
  end;
  execute replace($function$${requireEpoch(schema, mask)}$function$, '/* client check */', v_check);
  execute replace($function$${fence(schema, mask)}$function$, '/* client check */', v_check);
end $install$;
`;
}

function requireEpoch(schema: string, mask: bigint): string {
  return `
create or replace function ${schema}.tenure_require_epoch(p_scope text, p_epoch bigint) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $tenure$
declare
  v_key bigint := (select s.scope_key from ${schema}.tenure_leader_state s where s.scope = p_scope);
${check(schema, mask, "true")}
end $tenure$`;
}

/** The mark is what `markOf` of schema.ts says. */
function fence(schema: string, mask: bigint): string {
  const mark = `set_config('${MARK}', '${schema}/' || p_scope_key || '/' || p_epoch, true) <> ''`;
  return `
create or replace procedure ${schema}.tenure_fence(p_scope_key bigint, p_epoch bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $tenure$
declare
  v_key alias for p_scope_key;
  p_scope text;
${check(schema, mask, mark)}
end $tenure$`;
}

/**
 * The rest of both: from the last declarations to the end. `v_key` is NULL for a scope that is not known; `v_text` is NULL after the
 * reads unless the epoch is in force, and then how often the client is checked. CASE keeps the order, AND does not promise it.
 */
function check(schema: string, mask: bigint, marked: string): string {
  const held = `
      select case when s.epoch = p_epoch and s.holder_identity <> '' and s.timeline = left(pg_walfile_name(pg_current_wal_lsn()), 8)
        then case when ${marked} then /* client check */ end end
        into v_text from ${schema}.tenure_leader_state s where s.scope_key = v_key`;
  return `  v_text text;
  v_epoch bigint;
begin
  -- The lock returns void, never NULL.
  v_text := case when pg_is_in_recovery() then 'standby'
    when v_key is null or pg_advisory_xact_lock_shared(v_key # ${mask}) is null then null
    else current_setting('transaction_isolation') end;
  if v_text = 'read committed' then${held};
  elsif v_text = 'standby' then
    raise exception using errcode = '25006',
      message = 'this server is a standby: what it knows of epochs may be old, and nothing can be written here';
  elsif v_text is not null then${held} for share;
  end if;
  if v_text = '200ms' then
    return;
  elsif v_text is not null then
    if v_text::interval > '200 ms' then
      v_text := set_config('${CLIENT_CHECK}', '200ms', true);
    end if;
    return;
  end if;
  select s.scope, s.epoch into v_text, v_epoch from ${schema}.tenure_leader_state s where s.scope_key = v_key;
  raise exception using errcode = 'TN001',
    message = format('epoch %s of scope "%s" is over or never was: %s', coalesce(p_epoch::text, 'NULL'),
      coalesce(v_text, p_scope, 'NULL'),
      case when v_epoch is null then 'no such scope is known here'
        when v_epoch = p_epoch then 'its leader has resigned, or led before this server was promoted'
        else format('epoch %s is in force', v_epoch) end),
    detail = format('scope "%s", epoch %s', coalesce(v_text, p_scope), p_epoch),
    hint = 'nothing of this transaction is written; stop this work, and campaign again';`;
}
