#!/bin/sh
# The fence from psql alone, and so from any language: one more statement inside the transaction that writes.
#
#   tenure run --scope example-fence --backend "$DATABASE_URL" -- sh psql.sh rent
#
# `tenure run` gives TENURE_SCOPE and TENURE_EPOCH. A refusal is SQLSTATE TN001; psql then ends with exit code 3.
set -eu
psql "$DATABASE_URL" --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --set=VERBOSITY=verbose \
  --set=scope="$TENURE_SCOPE" --set=epoch="$TENURE_EPOCH" --set=memo="${1:-rent}" <<'SQL'
begin;
select from tenure_require_epoch(:'scope', :'epoch');
insert into posting (memo, epoch) values (:'memo', :'epoch');
commit;
SQL
