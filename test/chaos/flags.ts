// The command line of `npm run chaos`: what may be asked for, and one line for whoever asks for something else.

import { parseArgs, type ParseArgsConfig } from "node:util";
import { type FaultKind, WEIGHTS } from "./faults.ts";
import type { BackendName } from "./stage.ts";

export const HELP = `npm run chaos -- gate [options]

  Two to five real processes increment a counter through gate and fence, while they are killed, stopped, cut off and
  blocked, and while their server is restarted. The harness keeps its own ledger and compares.

  --backend NAME   postgres (default), etcd, or servers: three servers of Tenure's own
  --iterations N   how many faults (default 300 on postgres, 100 on the others)
  --minutes M      give up after M minutes (default 60)
  --seed S         the order of faults and the sizes of crews (default: a fresh one, printed)
  --faults A,B     only these kinds: ${Object.keys(WEIGHTS.postgres).join(", ")}; on etcd
                   and servers also revoke; on servers also server-kill, server-stop, kill-both
  --workers N      this many processes, 2 to 5 (default: drawn for each round)
  --json           one JSON object as the last line
  --help           this text

exit codes: 0 nothing was lost, nothing overlapped, every fault fired and the controls lost updates; 1 otherwise;
64 wrong use; 130 interrupted (143 by SIGTERM)

npm run chaos -- cluster --help: Tenure's own servers under faults
npm run chaos -- jobs --help: jobs on them, with agents, under faults
`;

const OPTIONS = {
  backend: { type: "string" },
  iterations: { type: "string" },
  minutes: { type: "string" },
  seed: { type: "string" },
  faults: { type: "string" },
  workers: { type: "string" },
  json: { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const;

export class UsageError extends Error {}

export type Flags = NonNullable<ReturnType<typeof readFlags>>;

/** Undefined: asked for help. */
export function readFlags(args: readonly string[], freshSeed: () => number) {
  const { values, positionals } = parsedArgs(args, OPTIONS);
  if (values.help === true) return undefined;
  if (positionals.length !== 1 || positionals[0] !== "gate")
    throw new UsageError("say what to run: gate, cluster or jobs");
  const backend = backendOf(values.backend ?? "postgres");
  const faults = values.faults?.split(",").map((kind) => {
    if (!(kind in WEIGHTS[backend])) {
      throw new UsageError(
        `--faults: there is no ${kind} on ${backend}, only ${Object.keys(WEIGHTS[backend]).join(", ")}`,
      );
    }
    return kind as FaultKind;
  });
  return {
    backend,
    iterations: whole("iterations", values.iterations, 1, 1_000_000) ?? (backend === "postgres" ? 300 : 100),
    minutes: whole("minutes", values.minutes, 1, 10_000) ?? 60,
    seed: whole("seed", values.seed, 0, Number.MAX_SAFE_INTEGER) ?? freshSeed(),
    faults,
    workers: whole("workers", values.workers, 2, 5),
    json: values.json === true,
  };
}

function backendOf(name: string): BackendName {
  if (name === "postgres" || name === "etcd" || name === "servers") return name;
  throw new UsageError(`--backend is postgres, etcd or servers, not ${name}`);
}

export function whole(name: string, text: string | undefined, least: number, most: number): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < least || value > most) {
    throw new UsageError(`--${name} takes a whole number from ${least} to ${most}, not ${JSON.stringify(text)}`);
  }
  return value;
}

export function parsedArgs<const T extends NonNullable<ParseArgsConfig["options"]>>(
  args: readonly string[],
  options: T,
) {
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options });
  } catch (error) {
    throw new UsageError((error as Error).message.split("\n")[0] ?? "", { cause: error });
  }
}
