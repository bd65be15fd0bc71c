// The command line of `npm run chaos -- tc`.

import { parsedArgs, UsageError, whole } from "./flags.ts";

export const TC_HELP = `npm run chaos -- tc [options]

  Three islands as real processes with TLS, each with ways of its own to the others. They are killed, stopped, wiped and restarted, leave and come
  back, get new certificates, and lose the way to each other, in one direction or in both, while the registry is changed. After each fault they
  must agree; all along, every island is asked what it shows.

  --minutes M      for the faults (default 10); every kind of fault happens at least once, however long that takes
  --seed S         the order of faults and victims (default: a fresh one, printed)
  --plant NAME     a known mistake, which the run must report: see docs/chaos.md
  --json           one JSON object as the last line
  --help           this text

exit codes: 0 no term had two leaders, no two leases overlapped, no term fell, every change of the registry was with all or with nobody, and every fault
of the plan happened; 1 otherwise; 64 wrong use; 130 interrupted (143 by SIGTERM)
`;

const MINUTES = 10;

const OPTIONS = {
  minutes: { type: "string" },
  seed: { type: "string" },
  plant: { type: "string" },
  json: { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const;

/** Undefined: asked for help. */
export function readTcFlags(args: readonly string[], freshSeed: () => number) {
  const { values, positionals } = parsedArgs(args, OPTIONS);
  if (values.help === true) return undefined;
  if (positionals.length > 0) throw new UsageError(`chaos tc takes options only, not ${positionals[0]}`);
  return {
    minutes: whole("minutes", values.minutes, 0, 10_000) ?? MINUTES,
    seed: whole("seed", values.seed, 0, Number.MAX_SAFE_INTEGER) ?? freshSeed(),
    plant: values.plant,
    json: values.json === true,
  };
}
