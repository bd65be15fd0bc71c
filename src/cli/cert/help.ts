// What `tenure cert` does and takes: its help, its parser and its completion come of this text (kit/description.ts).

import { CONNECTION_HELP } from "../kit/connection-help.ts";
import { TRUST_DOMAIN_DEFAULT } from "../../core/kit/spiffe.ts";
import { describe } from "../kit/description.ts";

export const DIRECTORY_DEFAULT = "certs";

export const CERT = describe(
  "cert",
  "certificates for nodes, operators and programs: init, issue, show, revoke, revoked",
  `tenure cert VERB: certificates for nodes, operators and programs.

  init               makes the cluster's own authority: ca.crt and ca.key in DIR
  issue              makes a certificate and its key; or, where there is one already, a new certificate for the same key
  show FILE...       what is in a certificate, and what is wrong with it
  revoke FILE        lets this client certificate in no more, on every node, also on connections that are open
  revoked            the client certificates that were revoked and have not expired

  --dir DIR          where ca.crt and ca.key are (default ${DIRECTORY_DEFAULT}). Keep ca.key away from the nodes
  --out DIR          issue: where to write NAME.crt and NAME.key, and where ca.crt then holds this authority too; those that
                     it holds already stay (default: the same as --dir)
  --node-id ID       issue: a node's. Without any name: the node whose certificate is in --out, else a new random id
  --operator NAME    issue: for somebody who may change the cluster (tenure cluster, tenure member, tenure key)
  --sdk NAME         issue: for a program that leads scopes
  --submitter NAME   issue: for a program that submits jobs
  --agent NAME       issue: for a program that runs jobs
  --backup NAME      issue: for a program that saves snapshots, and may do nothing else
  --controller ID    issue: for another site of the mesh, under its controller id
  --tc NAME          issue: for a program that decides transactions over several islands
  --viewer NAME      issue: for somebody who only looks
  --host H1,H2       issue: names and addresses under which the node's API is reached, in addition to those of the
                     certificate that is there
  --drop-host H1,H2  issue: those of the certificate that is there which the new one is to leave out
  --trust-domain TD  init: the first part of every identity, spiffe://TD/server/ID (default ${TRUST_DOMAIN_DEFAULT})
  --days N           how long it is valid (default: 3650 for an authority, 365 for the others)
  --force            replace a key that is there

revoke and revoked ask the cluster, and need the role operator; the others only read and write files:

${CONNECTION_HELP}
A running server takes a new certificate without a restart: put the files in place and send it SIGHUP.

exit codes: 0 done; 64 wrong use; 69 no leader, no server answers, or not every node can read a revocation yet; 75 it may have been done, or too many
are revoked (check with revoked); 77 the key may not do this; 78 a file or a certificate can't be used
`,
);
