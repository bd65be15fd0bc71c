// What `tenure scope` does and takes: its help, its parser and its completion come of this text (kit/description.ts).

import { describe } from "../kit/description.ts";

export const SCOPE = describe(
  "scope",
  "who leads what: list, show, watch, history, resign",
  `tenure scope VERB [SCOPE] --backend URL [-o table|json]: who leads what.

  list               every scope: its state, epoch, leader, since when, age of the last heartbeat
  show SCOPE         one scope, with its metadata, keys and sessions, and who waits (Postgres)
  watch SCOPE        a line for each change of the leader, until SIGINT; goes on over restarts of the backend
  history SCOPE      the last transitions, newest first
  resign SCOPE       asks the present leader to step down, and waits until its epoch is over

  --backend URL      postgres://user:password@host/database, etcd://host:port[,host:port…], or https://host:port[,…]
                     for Tenure's own servers (or TENURE_BACKEND, or TENURE_URL)
  --scope SCOPE      the same as the word SCOPE; for names that begin with a dash
  --wait 10s         resign: how long to wait for the end of the epoch (default 10s)
  --force            resign: take the scope away: end its session (Postgres), delete its key (etcd), end its lease
                     (Tenure's servers). The old leader may believe in its term a moment longer; only a fence keeps
                     its writes out
  -o table|json      for people (default), or one JSON object on a line; watch: one for each change; --json is -o json
  --help             this text

States: held; free (nobody leads); stale (a leader is named, but its session is gone, or its heartbeat is late).

exit codes: 0 done; 64 wrong use; 66 there is no such scope; 69, 77, 78 the backend (docs/errors.md); 75 the leader
did not step down within --wait; 130 and 143 watch was ended by SIGINT or SIGTERM
`,
);
