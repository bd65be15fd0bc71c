// The command line of `npm run chaos -- jobs`.

import { parsedArgs, UsageError, whole } from "./flags.ts";
import { type JobsPlantName, JOBS_PLANTS } from "./jobs-plants.ts";
import type { JobsBackend } from "./jobs-stage.ts";

export const JOBS_HELP = `npm run chaos -- jobs [options]

  Three servers, agents and submitters, all real processes, while leaders and agents are killed, stopped past their leases
  and restarted about every second, and clients' connections are cut. The harness keeps the ledger of what submitters and
  agents were told, and compares it with what every server says in the end.

  --jobs N         how many jobs, more where faults are still missing then (default 20000)
  --per-second N   how fast they are submitted, at most (default 100)
  --race N         instead: 20 agents wait, 10 jobs come, exactly 10 assignments, N times, while leaders are killed
  --stops N        instead: nothing fails, but agents and servers are stopped in order N times, over links of 400 ms: no attempt is lost
  --backend NAME   embedded (default), postgres, or both, one after the other
  --minutes M      for each backend; what is not submitted then fails the run (default 20)
  --seed S         the order of faults and victims, and what jobs do (default: a fresh one, printed)
  --plant NAME     a known mistake, which the run must report: ${Object.keys(JOBS_PLANTS).join(", ")}
  --json           one JSON object as the last line
  --help           this text

exit codes: 0 nothing was lost, committed or submitted twice, all servers serve the same events, and the faults did what they
should; 1 otherwise; 64 wrong use; 130 interrupted (143 by SIGTERM)
`;

export type JobsFlags = NonNullable<ReturnType<typeof readJobsFlags>>;

const JOBS = 20_000;
const PER_SECOND = 100;
const MINUTES = 20;

const OPTIONS = {
  jobs: { type: "string" },
  "per-second": { type: "string" },
  race: { type: "string" },
  stops: { type: "string" },
  backend: { type: "string" },
  minutes: { type: "string" },
  seed: { type: "string" },
  plant: { type: "string" },
  json: { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const;

/** Undefined: asked for help. */
export function readJobsFlags(args: readonly string[], freshSeed: () => number) {
  const { values, positionals } = parsedArgs(args, OPTIONS);
  if (values.help === true) return undefined;
  if (positionals.length > 0) throw new UsageError(`chaos jobs takes options only, not ${positionals[0]}`);
  return {
    jobs: whole("jobs", values.jobs, 1, 10_000_000) ?? JOBS,
    perSecond: whole("per-second", values["per-second"], 1, 100_000) ?? PER_SECOND,
    race: whole("race", values.race, 1, 1_000_000),
    stops: whole("stops", values.stops, 1, 1_000_000),
    backends: backendsOf(values.backend ?? "embedded"),
    minutes: whole("minutes", values.minutes, 1, 10_000) ?? MINUTES,
    seed: whole("seed", values.seed, 0, Number.MAX_SAFE_INTEGER) ?? freshSeed(),
    plant: plantOf(values.plant),
    json: values.json === true,
  };
}

function backendsOf(name: string): readonly JobsBackend[] {
  if (name === "both") return ["embedded", "postgres"];
  if (name === "embedded" || name === "postgres") return [name];
  throw new UsageError(`--backend is embedded, postgres or both, not ${name}`);
}

function plantOf(name: string | undefined): JobsPlantName | undefined {
  if (name === undefined || name in JOBS_PLANTS) return name as JobsPlantName | undefined;
  throw new UsageError(`--plant: there is no ${name}, only ${Object.keys(JOBS_PLANTS).join(", ")}`);
}
