// What `tenure key` does and takes: its help, its parser and its completion come of this text (kit/description.ts).

import { CONNECTION_HELP } from "../kit/connection-help.ts";
import { API_ROLES } from "../../core/kit/api-role.ts";
import { describe } from "../kit/description.ts";

export const KEY = describe(
  "key",
  "API keys that it keeps, by role: create, list, revoke",
  `tenure key VERB [--url URL[,URL…]] [-o table|json]: API keys that the cluster keeps, as hashes.

  create             makes a key, lets it in on every node, and prints it: once, nobody can show it again
  list               the keys that were made so, without the keys themselves; those of configuration files are not among them
  revoke NAME        lets a key in no more

  --role ROLE        create: viewer reads; submitter also submits, cancels and retries jobs; agent also runs them; client
                     also leads scopes and writes values; backup saves snapshots, and nothing else; controller is another site of the mesh,
                     whose controller id is the key's --name; operator may do everything
  --name NAME        create: how it is called in audits and job lists (default: its role and a random ending)
  --offline          create: asks no server. Prints the key, and on stderr the entry for \`keys\` in the configuration of every
                     node: the way to the first operator
${CONNECTION_HELP}
It needs the role operator, by key or by certificate.

exit codes: 0 done; 64 wrong use; 69 another key has that name, there is none of that name, no leader, or no server answers;
75 it may have been done: look with list (a key that was not printed is lost: revoke it); 77 the key may not do this; 78 a certificate that is not
trusted (--ca) or can't be used (docs/errors.md)
`,
  { offers: { "--role": API_ROLES } },
);
