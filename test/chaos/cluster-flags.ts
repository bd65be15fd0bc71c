// The command line of `npm run chaos -- cluster`.

import { CLUSTER_FAULTS, type ClusterFault } from "./cluster-faults.ts";
import { type PlantName, PLANTS } from "./cluster-plants.ts";
import { parsedArgs, UsageError, whole } from "./flags.ts";

export const CLUSTER_HELP = `npm run chaos -- cluster [options]

  Three or five real node processes with real disks replicate a key-value store, while they are killed, stopped, cut off,
  lose their disks and change members. Clients write and read all along; the ledger is outside of the cluster, and
  everything they were told goes through a linearizability checker.

  --iterations N   how many faults (default 1000)
  --minutes M      give up after M minutes (default 60)
  --seed S         the order of faults, victims and requests (default: a fresh one, printed)
  --faults A,B     only these kinds: ${CLUSTER_FAULTS.join(", ")}
  --voters N       3 or 5 (default: three, and sometimes five)
  --plant NAME     a known mistake in every node, which the run must report: ${Object.keys(PLANTS).join(", ")}
  --json           one JSON object as the last line
  --help           this text

exit codes: 0 nothing was lost, no term had two leaders, the history is linearizable and every fault fired; 1 otherwise;
64 wrong use; 130 interrupted (143 by SIGTERM)
`;

export type ClusterFlags = NonNullable<ReturnType<typeof readClusterFlags>>;

const OPTIONS = {
  iterations: { type: "string" },
  minutes: { type: "string" },
  seed: { type: "string" },
  faults: { type: "string" },
  voters: { type: "string" },
  plant: { type: "string" },
  json: { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const;

/** Undefined: asked for help. */
export function readClusterFlags(args: readonly string[], freshSeed: () => number) {
  const { values, positionals } = parsedArgs(args, OPTIONS);
  if (values.help === true) return undefined;
  if (positionals.length > 0) throw new UsageError(`cluster takes options only, not ${positionals[0]}`);
  const voters = whole("voters", values.voters, 3, 5);
  if (voters === 4) throw new UsageError("--voters is 3 or 5: four tolerate no more faults than three");
  return {
    iterations: whole("iterations", values.iterations, 1, 1_000_000) ?? 1_000,
    minutes: whole("minutes", values.minutes, 1, 10_000) ?? 60,
    seed: whole("seed", values.seed, 0, Number.MAX_SAFE_INTEGER) ?? freshSeed(),
    faults: values.faults?.split(",").map(faultOf),
    voters,
    plant: plantOf(values.plant),
    json: values.json === true,
  };
}

function faultOf(kind: string): ClusterFault {
  const found = CLUSTER_FAULTS.find((one) => one === kind);
  if (found === undefined) throw new UsageError(`--faults: there is no ${kind}, only ${CLUSTER_FAULTS.join(", ")}`);
  return found;
}

function plantOf(name: string | undefined): PlantName | undefined {
  if (name === undefined || name in PLANTS) return name as PlantName | undefined;
  throw new UsageError(`--plant: there is no ${name}, only ${Object.keys(PLANTS).join(", ")}`);
}
