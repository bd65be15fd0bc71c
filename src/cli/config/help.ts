// What `tenure config` does and takes: its help, its parser and its completion come of this text (kit/description.ts).

import { describe } from "../kit/description.ts";

export const CONFIG = describe(
  "config",
  "a server's configuration file, or your own: check, show",
  `tenure config VERB FILE [-o table|json]: a server's configuration (TOML or JSON), with this machine's environment.

  check FILE         would \`tenure server start --config FILE\` work here? Every field, the files that it names, certificates, keys
  show FILE          every setting as it is in effect: its value, and whether the file, the environment or nobody said so. A
                     password in the backend's URL is not shown
  show --client      the same of this user's own file, which says where commands find a cluster: TENURE_CONFIG, or
                     ~/.config/tenure/config.toml. A key is not shown

  --client           show: this user's file, and not a server's
  -o table|json      for people (default), or one JSON object on a line; --json is -o json
  --help             this text

It starts nothing and writes nothing. Warnings do not change the exit code.

exit codes: 0 it is valid; 64 wrong use; 78 it is not, and each wrong field is named (docs/reference/configuration.md)
`,
);
