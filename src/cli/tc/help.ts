// What `tenure tc` does and takes: its help, its parser and its completion come of this text (kit/description.ts).

import { CONNECTION_HELP } from "../kit/connection-help.ts";
import { describe } from "../kit/description.ts";

export const TC = describe(
  "tc",
  "an island among transaction coordinators: list, leader, announce, leave, rm, found, discard, recover",
  `tenure tc VERB [--url URL[,URL…]] [-o table|json]: an island (a cluster) among others, with which it decides transactions.

  list               the members, as the node that answers knows them; who votes, and how many of the voters a leader needs
  leader             who leads, in which term, and what the node that answers is itself
  announce           the node at --url takes part again after leave
  leave              the node at --url takes part no more, until announce or its next start; the others remove it from their voters
                     first, and where one of them can't be reached it stays
  rm list            the islands that take part, and where each is reached (RM: resource manager)
  rm register HASH URL    an island takes part, or is reached at one more URL; HASH is its backend_hash (leader, there: island)
  rm unregister HASH URL  the island is not reached at that URL any more

On the node's machine, while the node is stopped:

  found              founds a cluster of coordinators of this node alone, although nodes of tc.join have not answered
  discard            gives up what this node knows of its cluster of coordinators: it joins another one as a new voter
  recover            a majority of the voters is lost for good: makes this node the only voter of its cluster

  --config FILE      found, discard, recover: the node's configuration
  --force            found, discard, recover: yes, really
${CONNECTION_HELP}
list, leader and rm list need a certificate of the kind operator, server or tc, or a key of the role viewer. announce and leave need the
node's own server certificate (api.tls.cert_file there), rm register and unregister any node's: --cert and --client-key.

exit codes: 0 done; 64 wrong use, or --force is missing; 69 nobody leads, no server answers, the node is no coordinator, or a member did
not answer and nothing was changed; 74 what the node has promised can't be read; 75 try again, or it may have been done: check; 77 the
certificate or the key may not do this; 78 the configuration, a certificate that is not trusted (--ca) or can't be used, or the data
directory (docs/errors.md)
`,
);
