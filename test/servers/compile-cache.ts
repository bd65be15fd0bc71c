// Where Node keeps what it has compiled of our sources, for every process that a test starts: three servers take 3 s of the
// processor's time to start without it and 1 s with it. All runs share it, so only the first one after a change compiles.

import { fileURLToPath } from "node:url";

export const COMPILE_CACHE = fileURLToPath(new URL("../../node_modules/.cache/tenure-compiled", import.meta.url));
