// The nodes of a site on Postgres, as SQL for one schema name (quoted already): who they are, where their API is, and when each
// was heard last. Nothing is decided by it: the elector decides who leads, the log what counts.
//
// - tenure_node: one row for each node id, written by its node once a second. A node that leaves in order deletes its own;
//   the row of one that never came back is deleted by the others after a day.
// - tenure_site founds the log where it is new, and tells whose it is.

export const SITE_TABLES = ["tenure_node"] as const;

export const SITE_ROUTINES = {
  tenure_site: "text",
  tenure_node_beat: "text, text, text, text, text, bigint",
  tenure_node_leave: "text, text, text",
} as const;

const DEFINER = "language plpgsql volatile security definer set search_path = pg_catalog, pg_temp";
const FORGOTTEN_AFTER = "1 day";

/** Part of migration 2, inside a DO block. */
export function siteTables(schema: string): string {
  return `
    create table ${schema}.tenure_node (
      log text not null,
      node text not null check (octet_length(node) between 1 and 63),
      instance text not null,
      url text not null,
      version text not null,
      applied bigint not null,
      last_seen timestamptz not null,
      primary key (log, node)
    ) with (fillfactor = 50);`;
}

export function siteFunctions(schema: string): string {
  return `
create or replace function ${schema}.tenure_site(p_log text) returns uuid ${DEFINER} as $tenure$
begin
  insert into ${schema}.tenure_log_head (log) values (p_log) on conflict do nothing;
  return (select h.site from ${schema}.tenure_log_head h where h.log = p_log);
end $tenure$;

create or replace function ${schema}.tenure_node_beat(
  p_log text, p_node text, p_instance text, p_url text, p_version text, p_applied bigint
) returns void ${DEFINER} as $tenure$
begin
  -- Nothing rests on it: after a crash of the server the next beat writes it again.
  perform set_config('synchronous_commit', 'off', true);
  insert into ${schema}.tenure_node as n (log, node, instance, url, version, applied, last_seen)
    values (p_log, p_node, p_instance, p_url, p_version, p_applied, clock_timestamp())
    on conflict on constraint tenure_node_pkey do update set instance = excluded.instance, url = excluded.url,
      version = excluded.version, applied = excluded.applied, last_seen = excluded.last_seen;
  delete from ${schema}.tenure_node n
    where n.log = p_log and n.last_seen < clock_timestamp() - interval '${FORGOTTEN_AFTER}';
end $tenure$;

create or replace function ${schema}.tenure_node_leave(p_log text, p_node text, p_instance text) returns void ${DEFINER} as $tenure$
begin
  delete from ${schema}.tenure_node n where n.log = p_log and n.node = p_node and n.instance = p_instance;
end $tenure$;
`;
}
