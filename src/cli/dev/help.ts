// What `tenure dev` does and takes: its help, its parser and its completion come of this text (kit/description.ts).

import { describe } from "../kit/description.ts";

export const DEV = describe(
  "dev",
  "three nodes on this machine with sample jobs, to look at and to kill",
  `tenure dev [--sites 3] [--for D] [--json] (npm start [-- --for D]): three nodes on this machine with sample jobs, in the terminal.

  --sites N    3: three sites of one node each, which share their histories (docs/mesh.md), in place of one cluster
  --for D      end by itself after so long, such as 30s; the leader is killed twice on the way; of sites, one is cut off and comes back
  --json       one JSON object at the end: {failovers: [{cause, ms}], jobs, lost, leader, epoch}; of sites: {sites: [{id, events}], cut,
               equal, heal_ms}
  --help       this text

Keys: k kill -9 the leader; p pause it (SIGSTOP), or let it go on; d drain it; t transfer leadership; q quit.
Of sites: c cut one off, or heal it; k kill -9 one; q quit.

exit codes: 0 ended as asked, after somebody led, and no job was lost; 1 a job was lost, with --for a killed leader had no successor, or
the sites' histories were not equal at the end; 64 wrong use; 69 nobody ever led, or no server came up in three tries; 130, 143 ended by a signal
`,
);
