// What `tenure job` does and takes: its help, its parser and its completion come of this text (kit/description.ts).

import { JOB_STATES } from "../../core/jobs/model.ts";
import { LISTING_HELP } from "../kit/connection-help.ts";
import { describe } from "../kit/description.ts";

export const LIST_LIMIT = 50;

export const JOB = describe(
  "job",
  "work for its agents: submit, list, show, logs, cancel, retry, wait",
  `tenure job VERB [--url URL[,URL…]] [-o table|json|jsonl]: jobs at Tenure's own servers.

  submit KIND             submits a job and follows it: its log on stdout, what becomes of it on stderr
  submit -- COMMAND ARG…  the same, of the kind exec with the payload {"command": [COMMAND, ARG…]}
  list                    the jobs, newest first
  show ID                 one job: what is to be done, its attempts, its result, why it waits
  logs ID                 what an attempt has printed
  cancel ID…              cancels them; a running one is asked to stop
  retry ID…               finished jobs, once more
  wait ID…                until all of them are finished

submit:
  --payload JSON          what the handler gets
  --payload-file FILE     the same from a file; - is stdin
  --queue Q               where it waits (default: default); list: of this queue
  --priority N            higher goes first (default: 0)
  --label NAME=VALUE      agents must have it too; may be given again
  --platform P            agents must be of this platform
  --not-before WHEN       a time such as 2030-01-31T15:00:00Z, or in a duration such as 10m
  --attempts N            so many may fail (default: 3)
  --losses N              so many agents may vanish with it (default: 10)
  --backoff BASE,MAX      the initial and the maximum retry delay (default: 1s,5m)
  --timeout D             for each attempt (default: none); wait: how long to wait, at most 24h (default: for ever)
  --retention D           how long it is kept once finished (default: 7d)
  --concurrency KEY=LIMIT at most so many jobs with this key run at one time
  --env NAME=VALUE        of a command: its environment; may be given again
  --cwd DIR               of a command: where it runs
  --idempotency-key K     the same key with the same job is one job, for 24 hours
  --detach                print the id on stdout, and do not follow

list:
  --state S[,S…]          ${JOB_STATES.join(", ")}
  --kind K                of this kind; submit: the same as the word KIND
  --agent NAME            that this agent has or had
  --search TEXT           with all of these words
  --limit N               at most so many (default: ${LIST_LIMIT})

logs:
  --attempt N             of this attempt (default: the last)
  --follow                goes on until the attempt has ended

all:
${LISTING_HELP}
submit, cancel and retry need the role submitter, the rest viewer.

exit codes: 0 done; submit, wait: completed; 1 submit, wait: a job failed or was cancelled; 64 wrong use, a job that the servers
refuse, or one that is not finished (retry); 69 there is no such job, it is finished (cancel), nobody leads, or no server answers;
75 wait: the time is over; else not now, or it may have been done: look; 77 the key may not do this; 78 a certificate that is
not trusted (--ca) or can't be used (docs/errors.md); 130 and 143 ended by SIGINT or SIGTERM: a job that was followed goes on
`,
  { lists: ["label", "env"], offers: { "--state": JOB_STATES, "--cwd": "any" } },
);
