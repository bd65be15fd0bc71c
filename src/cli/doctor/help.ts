// What `tenure doctor` does and takes: its help, its parser and its completion come of this text (kit/description.ts).

import { describe } from "../kit/description.ts";

export const DOCTOR = describe(
  "doctor",
  "what could go wrong with this backend, and how to fix it",
  `tenure doctor --backend URL [--scope S] [--strict] [-o table|json]: what could go wrong, and what fixes it.

  --backend URL      postgres://user:password@host/database, etcd://host:port[,host:port…], or https://host:port[,…]
                     for Tenure's own servers (or TENURE_BACKEND, or TENURE_URL)
  --scope S          look at this scope's key, lock, fence and leader (default: at every scope that is stored)
  --strict           warnings, and what could not be checked, count as problems
  -o table|json      for people (default), or one JSON object on a line; --json is -o json
  --help             this text

It takes about two seconds, writes nothing and takes no lock. Run it with the URL and the role of your instances, from
where they run: rights, limits, latency and clock are those of this connection.

exit codes: 0 no problem; 1 at least one problem; 64 wrong use; 78 a wrong setting (docs/errors.md)
`,
);
