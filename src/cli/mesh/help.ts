// What `tenure mesh` does and takes: its help, its parser and its completion come of this text (kit/description.ts).

import { CONNECTION_HELP } from "../kit/connection-help.ts";
import { describe } from "../kit/description.ts";

export const MESH = describe(
  "mesh",
  "a site among other sites: key, sites, status, log, audit, verify, approve, evict, resume, leave, join, evidence",
  `tenure mesh VERB [--url URL[,URL…]] [-o table|json]: a site among other sites, and the proof of its history.

  key                the public key of a server's node, and the hash of its site's ring of keys: what others pin
  sites              this site and those that are registered with it
  status             this site's line, how far it goes, and whether the node signs for it
  log                the events of all sites in the order in which they arrived at this one. Each line begins with its arrival number
  audit [URL]        proves a site's whole history from outside: pulls every event from the first on, and checks bytes, links, tree,
                     signatures and changes of keys. URL is instead of --url. Texts of logs and keys are withheld: of those only
                     the hash is checked
  approve SITE       takes what a site sends, or takes it back after evict; with --ring, a site that has lost its keys, or whose line
                     has forked: it comes back with that ring
  evict SITE         takes nothing from a site any more, and refuses its key
  resume             gives out this site's line again after a start, without waiting for peers that can't be compared
  leave              takes this site out of its mesh: the others hear of it and wait for it no more, and every link ends. Jobs go on
  join               takes it back after leave; it goes on with the same line
  evidence [SITE]    what proves that a site has signed two histories
  verify             replays all sites' events on the node at --url: verifies both of its archives, builds the merged state again, and
                     compares the two. What differs is built anew. Needs the role operator

  --site SITE        log: of this site alone
  --type TYPE        log: of this type alone, such as build:submitted, or withheld
  --entity ID        log: about this job, agent or site alone
  --after ARRIVAL    log: what arrived after this number; without it, the newest 100
  --limit N          log: so many, and no more; without --after and --follow at most 200
  --follow           log: and those that arrive from now on
  --ring HASH        audit, approve: the hash of the site's ring, as \`tenure mesh key\` shows it there. Without it and --public-key
                     an audit says that the history is consistent, and not whose it is
  --new-line         resume: ends this site's line, and goes on in the next generation: where the disk is an older copy, or the line
                     has forked
  --public-key KEY   audit: the key that must have signed the head: that of the node that is asked
  --key-file FILE    key: of this file (mesh.key_file), without a server
${CONNECTION_HELP}
It needs the role viewer; approve, evict, resume, leave, join and verify the role operator.

exit codes: 0 done; audit: everything is proven; verify: equal; 1 audit: something is not what was signed, and it is named; verify: something differs, is damaged or can't be compared; 64 wrong use; 69 no server
answers, the site can't sign now or does not keep its first events any more, or a site is not known; 75 try again later; 77 the key may not do this; 78 the site is standalone, a certificate that is not trusted (--ca) or can't be used, or the key file must not be used (docs/errors.md);
130 and 143 ended by SIGINT or SIGTERM
`,
);
