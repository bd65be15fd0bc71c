// What `tenure schedule` does and takes: its help, its parser and its completion come of this text (kit/description.ts).

import { CATCH_UPS } from "../../core/jobs/model.ts";
import { CONNECTION_HELP, LISTS } from "../kit/connection-help.ts";
import { describe } from "../kit/description.ts";

export const SCHEDULE = describe(
  "schedule",
  "jobs that come by the clock: list, show, put, delete",
  `tenure schedule VERB [NAME] [--url URL[,URL…]] [-o table|json]: jobs that come by the clock.

  list               every schedule, and when it comes next; also -o jsonl, one object on a line for each
  show NAME          one schedule, with the job that it submits
  put NAME           makes a schedule, or replaces the one of that name as a whole:
                     tenure schedule put NAME --cron "0 3 * * *" --kind KIND [job flags]
                     tenure schedule put NAME --cron "0 3 * * *" [job flags] -- COMMAND ARG…   (a job of the kind exec)
                     tenure schedule put NAME --file FILE
  delete NAME        no more jobs come of it; those that came go on

  --cron "…"         put: minute, hour, day of the month, month, day of the week
  --time-zone ZONE   put: of the cron, such as Europe/Berlin (default: UTC)
  --overlap HOW      put: while a job of it is not finished, skip (default) or allow another
  --catch-up HOW     put: of the times that passed while no server led, none, the last (default) or all
  --paused           put: nothing comes of it until it is put again without this
  --file FILE        put: all of it as JSON, in the fields of \`show -o json\`; - is stdin
  --kind KIND        put: the kind of its jobs
  --payload JSON     put: what the handler gets; the flags from here on are those of tenure job submit
  --payload-file FILE  put: the same from a file; - is stdin
  --queue Q          put: the queue of its jobs
  --priority N       put: higher goes first
  --label NAME=VALUE  put: agents must have it too; may be given again
  --platform P       put: agents must be of this platform
  --attempts N       put: so many may fail
  --losses N         put: so many agents may vanish with a job
  --backoff BASE,MAX  put: the initial and the maximum retry delay, such as 1s,5m
  --timeout D        put: for each attempt
  --retention D      put: how long a job is kept once finished
  --concurrency KEY=LIMIT  put: at most so many jobs with this key run at one time
  --env NAME=VALUE   put, of a command: its environment; may be given again
  --cwd DIR          put, of a command: where it runs
${CONNECTION_HELP}
list and show need the role viewer, the others the role submitter.

exit codes: 0 done; 64 wrong use, or a cron, a time zone or a job that the servers refuse; 69 there is no schedule of that name, no
leader, or no server answers; 75 not now, or it may have been done: look with list; 77 the key may not do this; 78 a certificate that is not
trusted (--ca) or can't be used (docs/errors.md)
`,
  {
    lists: ["label", "env"],
    offers: { ...LISTS, "--overlap": ["skip", "allow"], "--catch-up": CATCH_UPS, "--cwd": "any" },
  },
);
