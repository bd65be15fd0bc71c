// What `tenure run` does and takes: its help, its parser and its completion come of this text (kit/description.ts).

import { describe } from "../kit/description.ts";

export const RUN = describe(
  "run",
  "run a command only while this instance leads",
  `tenure run --scope S --backend URL [options] -- CMD [ARG…]: runs CMD only while this instance leads S.

  --scope S          what is led: instances that compete write the same text
  --backend URL      postgres://user:password@host/database, etcd://host:port[,host:port…], or https://host:port[,…]
                     for Tenure's own servers (or TENURE_BACKEND, or TENURE_URL)
  --on-lose stop     leadership is lost: SIGTERM, then SIGKILL when the grace is over (default)
  --on-lose kill     leadership is lost: SIGKILL at once
  --grace 2s         between SIGTERM and SIGKILL. SIGTERM comes so much before trust in the leadership ends
  --drain 2s         between SIGTERM and SIGKILL when you stop \`tenure run\` itself (default: as --grace)
  --once             leadership is lost: exit 76 once CMD is dead, instead of campaigning again
  --forever          start CMD again whenever it ends by itself, after 100ms to 5s, until a signal comes
  --wait 30s         exit 75 if leadership was not won within this time (default: wait for ever)
  --identity I       who this instance is, for people (default: scope, host, process and a random part)
  --quiet            say errors only
  --log text|json    how to say it, on stderr (default text)
  --help             this text

CMD ends by itself: exit with its code (128 + n for signal n). CMD gets TENURE_SCOPE and TENURE_EPOCH; check the
epoch where you write (tenure_require_epoch in Postgres), because only the resource itself can refuse a late write.
SIGTERM and SIGINT end CMD, then release the scope; a second one kills. SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and
SIGWINCH are passed on. TENURE_LEADER_ENABLED=false: never lead. Knobs of the backend: docs/run.md.

CMD runs in a process group of its own under a guard process, which kills the group when \`tenure run\` dies, freezes
or is cut off. What no guard can do: stop a process that left the group (setsid, a daemon) or runs as another user;
act while the whole machine is paused, or while both \`tenure run\` and the guard are stopped or killed in one blow; see
a pause in which both clocks stood still (a hypervisor's pause, a snapshot, a live migration) before the next heartbeat
fails; recall what CMD has already sent. After a loss that is known at once, CMD may run on concurrently with the next leader: for
the grace with --on-lose stop, for some milliseconds with --on-lose kill and after a kill -9 of \`tenure run\`; and for
up to the trust window (4.5s) if \`tenure run\` is frozen or cut off and its session ends at the server meanwhile.

exit codes: CMD's own; 64 wrong use; 69, 77, 78 the backend (docs/errors.md); 70 the guard failed; 75 never won;
76 lost, with --once; 126 CMD can't be run; 127 CMD was not found; 128 + n ended by signal n while waiting
`,
);
