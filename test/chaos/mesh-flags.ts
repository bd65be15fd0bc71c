// The command line of `npm run chaos -- mesh`.

import { parsedArgs, UsageError, whole } from "./flags.ts";

export const MESH_HELP = `npm run chaos -- mesh [options]

  Five sites, one of them of three nodes, all real processes, linked through proxies. Jobs are submitted at each and agents finish
  them, while sites and leaders are killed and stopped, links are cut, a hostile site delivers bad pages, and a copy of a site's
  disk is started with the site's own key. Then the faults end, and every site must have the same bytes of every line.

  --minutes M      for the faults (default 10); every kind of fault happens at least once, however long that takes
  --forks N        copies of a site's disk that are started (default 1)
  --seed S         the order of faults and victims (default: a fresh one, printed)
  --plant NAME     a known mistake, which the run must report: see docs/chaos.md
  --json           one JSON object as the last line
  --help           this text

exit codes: 0 nothing was lost, all sites agree, all bad pages were refused, each fork was found and none was invented, and every
fault of the plan happened; 1 otherwise; 64 wrong use; 130 interrupted (143 by SIGTERM)
`;

export type MeshFlags = NonNullable<ReturnType<typeof readMeshFlags>>;

const MINUTES = 10;
const FORKS = 1;
const FORKS_MAX = 8;

const OPTIONS = {
  minutes: { type: "string" },
  forks: { type: "string" },
  seed: { type: "string" },
  plant: { type: "string" },
  json: { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const;

/** Undefined: asked for help. */
export function readMeshFlags(args: readonly string[], freshSeed: () => number) {
  const { values, positionals } = parsedArgs(args, OPTIONS);
  if (values.help === true) return undefined;
  if (positionals.length > 0) throw new UsageError(`chaos mesh takes options only, not ${positionals[0]}`);
  return {
    minutes: whole("minutes", values.minutes, 0, 10_000) ?? MINUTES,
    forks: whole("forks", values.forks, 0, FORKS_MAX) ?? FORKS,
    seed: whole("seed", values.seed, 0, Number.MAX_SAFE_INTEGER) ?? freshSeed(),
    plant: values.plant,
    json: values.json === true,
  };
}
