// What `tenure schema` does and takes: its help, its parser and its completion come of this text (kit/description.ts).

import { OUTPUTS } from "../kit/output.ts";
import { describe } from "../kit/description.ts";

export const SCHEMA = describe(
  "schema",
  "the tables and functions in Postgres: print, apply, check",
  `tenure schema: Tenure's tables and functions in Postgres.

  tenure schema print                  the SQL, as one transaction; needs no database
  tenure schema apply --backend URL    installs what is missing; safe to repeat, many at once
  tenure schema check --backend URL    what is missing or may not be used; changes nothing

  --backend URL   postgres://user:password@host:5432/database (or TENURE_BACKEND, TENURE_PG_CONN_STRING)
  --schema S      the Postgres schema they stand in (or TENURE_PG_SCHEMA); default public
  -o json         one JSON object instead of text

Exit code: 0 all is there, 78 something is missing or of another version, 77 the role lacks a right,
69 the server can't be reached, 64 a mistake on the command line.
Grants for the roles that use them: docs/reference/permissions.md
`,
  { offers: { "-o": OUTPUTS } },
);
