// What `tenure cluster` does and takes: its help, its parser and its completion come of this text (kit/description.ts).

import { CONNECTION_HELP } from "../kit/connection-help.ts";
import { describe } from "../kit/description.ts";

export const CLUSTER = describe(
  "cluster",
  "that cluster, seen and steered: status, elections, transfer, drain, resume, snapshot",
  `tenure cluster VERB [--url URL[,URL…]] [-o table|json]: Tenure's own servers, seen and steered.

  status                 the members, who leads, what is wrong; works without a leader and with nodes down
  elections              the last elections, newest first, with their votes
  transfer               hands leadership to another voter; prints from whom to whom, and how long it took
  drain NODE             takes a node out: another leads, and it does not want to until drain --undo, or until it is started anew
  resume                 lets a cluster act that was restored with --paused
  snapshot save FILE     saves a snapshot on a server, fetches it, checks it and writes it to FILE
  snapshot save DIR --keep N   the same from a timer: to a file in DIR with the time as its name; the newest N such files stay
  snapshot verify FILE   checks such a file and the state in it; asks no server

  --watch            status: again every second, until SIGINT
  --to NODE          transfer: to this voter (default: the one that is best caught up)
  --force            transfer: do not wait until the target has caught up; it must still win its election
                     snapshot save: replace FILE if it is there
                     drain: also where nobody else can lead
  --undo             drain: it may lead again
  --history DIR      snapshot verify: copies of a node's files events-…: with which event history would begin after a restore
  --keep N           snapshot save: how many backups stay in DIR, with the new one (1 to 10000)
${CONNECTION_HELP}
exit codes: 0 done; 64 wrong use, a target that can't lead, or a place where FILE can't be written; 65 the file is no whole
snapshot; 69 nobody leads, no server answers, there is no such node, or the transfer failed and nothing has changed; 74 the disk here fails; 75 it may
have been done, look, or the disk here is full; 77 the key may not do this; 78 a wrong setting, a
certificate that is not trusted (--ca) or can't be used, or FILE is there already (docs/errors.md); 130 and 143 --watch or snapshot save was ended by SIGINT or SIGTERM
`,
);
