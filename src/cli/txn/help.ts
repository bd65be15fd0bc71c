// What `tenure txn` does and takes: its help, its parser and its completion come of this text (kit/description.ts).

import { CONNECTION_HELP, LISTS } from "../kit/connection-help.ts";
import { describe } from "../kit/description.ts";

export const TXN = describe(
  "txn",
  "transactions over several clusters: run, show, list, replay",
  `tenure txn VERB [--url URL[,URL…]] [-o table|json]: transactions over islands (clusters that take part: tenure tc rm list). All of one is
committed, or nothing of it.

  run FILE|-         commits what is in FILE, or rolls it back; - reads it from stdin. It is the body of POST /v1/txn, as JSON; without
                     txn_id it gets a new one. The same id with the same content is never done twice, however often it is run
  show ID            one transaction, as the island at --url knows it
  list               all that this island knows, oldest first; also -o jsonl, one object on a line for each
  replay ID          has this island ask home now what was decided

  --id ID            run: under this id, such as one whose outcome is not known
  --in-doubt         list: only those that are prepared here and not decided, or decided here and not done at every island
  --force            replay ID --force commit, or rollback: ends it here without home, which is gone for good. It asks first: where another
                     island has ended it the other way, half of it is done, for ever. At home, commit: waits no longer for an island that is gone
  --yes              replay --force: does not ask
${CONNECTION_HELP}
run needs a certificate of the kind tc or server; show, list and replay one of the kind tc or operator (--cert, --client-key). No key is enough.

exit codes: 0 committed, or done; 64 wrong use; 69 rolled back (nothing of it was done, and the sentence says why), refused, no such transaction
here, nothing was forced, no coordinator leads, or no server answers; 75 it is not known whether it is committed: run it again under the same id; or
it is still in doubt; 77 the certificate may not do this; 78 a certificate that is not trusted (--ca) or can't be used (docs/errors.md); 130 and 143
run was ended by SIGINT or SIGTERM
`,
  { offers: LISTS },
);
