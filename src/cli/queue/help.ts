// What `tenure queue` does and takes: its help, its parser and its completion come of this text (kit/description.ts).

import { CONNECTION_HELP, LISTS } from "../kit/connection-help.ts";
import { describe } from "../kit/description.ts";

export const QUEUE = describe(
  "queue",
  "where jobs wait: list, pause, resume",
  `tenure queue VERB [NAME] [--url URL[,URL…]] [-o table|json]: the queues in which jobs wait for agents.

  list               every queue that has jobs or is paused; also -o jsonl, one object on a line for each
  pause NAME         its jobs are given to no agent any more; those that run go on. A queue without jobs can be paused too; of a
                     name that no job and no schedule has, stderr says so
  resume NAME        they are given out again

${CONNECTION_HELP}
list needs the role viewer, the others need the role operator. Pausing a queue that is paused is no error.

exit codes: 0 done; 64 wrong use; 69 no leader, or no server answers; 75 it may have been done: look with list; 77 the key may not
do this; 78 a certificate that is not trusted (--ca) or can't be used (docs/errors.md)
`,
  { offers: LISTS },
);
