// What `tenure member` does and takes: its help, its parser and its completion come of this text (kit/description.ts).

import { CONNECTION_HELP } from "../kit/connection-help.ts";
import { describe } from "../kit/description.ts";

export const MEMBER = describe(
  "member",
  "who belongs to it: add, promote, replace, remove",
  `tenure member VERB NODE [--url URL[,URL…]] [-o table|json]: who belongs to the cluster.

  add NODE           lets a node in as a learner: it copies the log and does not vote. Start it first
  promote NODE       makes a learner that has caught up a voter
  replace NODE       swaps a voter's lost disk for the new one that the same node came back with, though the old one may
                     still answer; without this the leader does it by itself once the old one is silent
  remove NODE        takes a node out; the leader hands over first

  --voter            add: make it a voter as soon as it has caught up
  --force            replace, remove: though the disk that leaves may hold the only copy of events that another voter lacks
${CONNECTION_HELP}
It asks for no confirmation. Removing what the cluster can hardly spare gives a warning on stderr, and is done.

exit codes: 0 done; 64 wrong use; 69 unknown, there already, no leader, or no server answers; 75 another change is under way, or
the node has not caught up: try again; or it may have been done: look; 77 the key may not do this; 78 a certificate
that is not trusted (--ca) or can't be used (docs/errors.md)
`,
);
