// What `tenure support` does and takes: its help, its parser and its completion come of this text (kit/description.ts).

import { CONNECTION_HELP } from "../kit/connection-help.ts";
import { describe } from "../kit/description.ts";

export const SUPPORT = describe(
  "support",
  "what to send along with a question: bundle",
  `tenure support bundle [FILE] [--url URL[,URL…]] [-o table|json]: what to send along with a question, in one archive.

  bundle [FILE]      asks every node that it finds, and writes FILE (default: tenure-support-TIME.tar.gz, here)

In it: status, elections and alerts; of each node its metrics, its configuration without keys, passwords and private keys, and its
last log lines (the controller's, at most 512 KiB). Jobs and their payloads are not in it. A node that does not answer within ten
seconds is named in bundle.json with the reason. Only you may read the file; look through it before you send it.

${CONNECTION_HELP}
Configurations and logs need the role operator. With a lower one they are left out, and bundle.json says so.

exit codes: 0 written, also where nodes are missing in it; 64 wrong use, or a place where FILE can't be written; 69 no server
answers; 75 the disk here is full; 77 the key may not do this; 78 a certificate that is not trusted (--ca) or can't be
used, or FILE is there already (docs/errors.md)
`,
);
