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
// - ROLLBACK TO a savepoint that is older than the call lets go of the key: call it outside of savepoints.
// - A client that is gone is noticed within 200 ms, also in the middle of a statement: its successor need not wait
//   for an answer that nobody reads (trap 49b). Whether the platform can do that is tried when this is installed.
//
// Every fenced transaction pays for this, so it is written for speed. CPU of the backend for BEGIN, fence and COMMIT,
// best of six, on Postgres 15: 50 us without a fence, 67 with `select 1` in its place, 122 for a function that looks
// the scope up, locks with PERFORM and reads the row; CALL saves the planner and the result set. The expressions
// below are evaluated in place where a PERFORM or SELECT INTO would be a query each.

/**
 * A setting that the procedure makes for its transaction. It lives as long as the lock: until the transaction ends, or is rolled
 * back to an older savepoint.
 */
export const MARK = "tenure.fence";

/** For one schema name, quoted already. */
export function fenceFunctions(schema: string, mask: bigint): string {
  return `
create or replace function ${schema}.tenure_fence_key(p_scope_key bigint) returns bigint
language sql immutable strict parallel safe as $tenure$ select p_scope_key # ${mask} $tenure$;

do $install$
declare
  v_check text := $check$
    v_text := current_setting('client_connection_check_interval');
    if v_text <> '200ms' and (v_text = '0' or v_text::interval > '200 ms') then
      v_text := set_config('client_connection_check_interval', '200ms', true);
    end if;$check$;
begin
  begin
    perform set_config('client_connection_check_interval', '200ms', true);
    perform set_config('client_connection_check_interval', '0', true);
  exception when others then
    v_check := '';
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
${check(schema, mask, "")}
end $tenure$`;
}

/** The mark is what `markOf` of schema.ts says. */
function fence(schema: string, mask: bigint): string {
  const mark = `
    v_text := set_config('${MARK}', '${schema}/' || p_scope_key || '/' || p_epoch, true);`;
  return `
create or replace procedure ${schema}.tenure_fence(p_scope_key bigint, p_epoch bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $tenure$
declare
  v_key constant bigint := p_scope_key;
  p_scope text;
${check(schema, mask, mark)}
end $tenure$`;
}

/** The rest of both: from the last declarations to the end. `v_key` is NULL for a scope that is not known. */
function check(schema: string, mask: bigint, whenHeld: string): string {
  return `  v_ok boolean;
  v_text text;
  v_epoch bigint;
begin
  if pg_is_in_recovery() then
    raise exception using errcode = '25006',
      message = 'this server is a standby: what it knows of epochs may be old, and nothing can be written here';
  end if;
  -- The lock returns void, never NULL; "is null" makes it an expression.
  if v_key is not null and not (pg_advisory_xact_lock_shared(v_key # ${mask}) is null) then
    if current_setting('transaction_isolation') = 'read committed' then
      v_ok := (select s.epoch = p_epoch and s.holder_identity <> '' and s.timeline = left(pg_walfile_name(pg_current_wal_lsn()), 8)
        from ${schema}.tenure_leader_state s where s.scope_key = v_key);
    else
      v_ok := (select s.epoch = p_epoch and s.holder_identity <> '' and s.timeline = left(pg_walfile_name(pg_current_wal_lsn()), 8)
        from ${schema}.tenure_leader_state s where s.scope_key = v_key for share);
    end if;
  end if;
  if v_ok then/* client check */${whenHeld}
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
