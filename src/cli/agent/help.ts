// What `tenure agent` does and takes: its help, its parser and its completion come of this text (kit/description.ts).

import { CONNECTION_HELP, LISTS, QUIET_HELP } from "../kit/connection-help.ts";
import { describe } from "../kit/description.ts";

export const LEVELS = ["trace", "debug", "info", "warn", "error", "silent"] as const;

/** Its flags alone. */
export const START = describe(
  "agent start",
  "",
  `  --server URL       start: one of the servers; may be given again (or --url)
  --name N           start: its name among agents; another process of the same name takes its jobs away (default HOST-PID)
  --capacity N       start: so many jobs at once (default 1)
  --label NAME=VALUE start: what it offers; jobs with labels go to agents that have them all; may be given again
  --platform P       start: jobs for a platform go to agents of it (default: this one's, such as linux)
  --kinds exec       start: the kinds that it runs; exec is the only one
  --lease D          start: after so long without a word from it, its jobs go to another agent (default 15s)
  --grace D          start: from SIGTERM to SIGKILL for a job that is cancelled, takes too long or is handed back (default 5s);
                     none where another agent may have it
  --drain D          start: how long running jobs may go on after SIGTERM before they are handed back (default 30s)
  --log-level L      start: ${LEVELS.join(", ")} (or TENURE_LOG_LEVEL; default info)
`,
  { lists: ["server", "label", "kinds"] },
);

export const START_HELP = `tenure agent start [--server URL]… [--name N] [--capacity N] [--label NAME=VALUE]…: runs the commands of exec jobs
(\`tenure job submit -- COMMAND\`) on this machine, until SIGTERM or SIGINT.

${START.help.replaceAll(" start: ", " ")}${QUIET_HELP}
It needs the role agent. Log lines are JSON, on stderr. A job is a process group of its own; when it ends, is cancelled or lost,
everything that it started is killed. SIGTERM and SIGINT: no new jobs, running ones have --drain; a second one ends it at once.
SIGHUP: the files of --ca, --cert and --client-key are read again.

exit codes: 0 stopped in order; 64 wrong use; 76 another process has taken over its name, or it was removed; 77 the key may not run
jobs; 78 a certificate that is not trusted; 130, 143 ended by a second SIGINT or SIGTERM (docs/errors.md)
`;

export const AGENT = describe(
  "agent",
  "who runs its jobs: start, list, show, drain, remove",
  `tenure agent VERB [NAME] [--url URL[,URL…]] [-o table|json]: who runs the jobs of Tenure's servers.

  start              runs exec jobs on this machine: tenure agent start --help
  list               every agent: its state, what it runs and what it offers; also -o jsonl, one object on a line for each
  show NAME          one agent, and the jobs that it holds
  drain NAME         gives it no new jobs; what it runs goes on. With --undo it is given jobs again, as when it is started anew
  remove NAME        takes its jobs away: each counts as lost to it (losses_max) and goes to another agent. What this process of
                     the agent reports from then on is refused; it is let in again when it is started anew

  --undo             drain: give it jobs again
${START.help}${CONNECTION_HELP}
start needs the role agent, list and show the role viewer, drain and remove the role operator.

exit codes: 0 done; 64 wrong use; 69 there is no agent of that name, no leader, or no server answers; 75 it may have been done:
look with list; 77 the key may not do this; 78 a certificate that is not trusted (--ca) or can't be used (docs/errors.md)
`,
  { offers: { ...LISTS, "--log-level": LEVELS } },
);
