// What `tenure value` does and takes: its help, its parser and its completion come of this text (kit/description.ts).

import { CONNECTION_HELP, LISTS } from "../kit/connection-help.ts";
import { describe } from "../kit/description.ts";

export const VALUE = describe(
  "value",
  "small JSON documents, written only by who leads: get, put, delete, list, watch",
  `tenure value VERB [NAME] [--url URL[,URL…]] [-o table|json]: small JSON documents on Tenure's servers, next to the scopes.

  get NAME           prints the value as JSON; with -o json also its version, when it was written, and by which leader
  put NAME JSON|-    writes it; - reads it from stdin. A negative number is written after --: put NAME -- -5
  delete NAME        deletes it; that there is none is no error
  list               every value, by name; also -o jsonl, one object on a line for each
  watch              what there is, then a line for each change, until SIGINT; goes on at another node where one dies

  --if-version N     put, delete: only where the value has this version; 0: only where there is none
  --scope SCOPE      put, delete: only while --epoch of this scope is in force (default TENURE_SCOPE, which tenure run sets)
  --epoch N          put, delete: that epoch (default TENURE_EPOCH, which tenure run sets)
  --prefix TEXT      list, watch: only names that begin so
  --after VERSION    watch: only changes after this version, and an error where they are not kept any more
${CONNECTION_HELP}
get, list and watch need the role viewer, put and delete the role client.

exit codes: 0 done; 64 wrong use; 69 there is no such value, it has another version, the epoch is over, no leader, or no server answers; 75 it may have
been done (look with get), a transaction has locked it (nothing was written), or the servers keep as many values as they can; 77 the key may not do this; 78 a certificate that is not trusted (--ca) or
can't be used (docs/errors.md); 130 and 143 watch was ended by SIGINT or SIGTERM
`,
  { offers: LISTS },
);
