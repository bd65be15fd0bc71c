// The command line of `npm run chaos -- txn`.

import { parsedArgs, UsageError, whole } from "./flags.ts";

export const TXN_HELP = `npm run chaos -- txn [options]

  Islands as real processes with TLS, each with ways of its own to the others. Clients transfer between accounts, and move workloads (a scope, a value and a
  job), by transactions over two or three islands. Meanwhile whoever coordinates kills itself (SIGKILL) at a named point between two steps of a
  transaction, an island beside it at one of its own; all are killed, stopped, and cut off. Every six steps everything is silent for
  once, and each transaction must be applied at all of its places or at none, as its client was told.

  --islands N      (default 3)
  --iterations N   kills of the coordinator, at each of its points in turn (default 100); every fault happens at least once
  --seed S         the order of faults and victims (default: a fresh one, printed)
  --plant NAME     a known mistake, which the run must report: see docs/chaos.md
  --json           one JSON object as the last line
  --help           this text

exit codes: 0 no transaction was half applied, none was told as what it was not, the sum of all accounts stayed, each old term was refused, nothing was in
doubt at the end, and every fault of the plan happened; 1 otherwise; 64 wrong use; 130 interrupted (143 by SIGTERM)
`;

const ITERATIONS = 100;
const ISLANDS = 3;
const ISLANDS_MAX = 7;

const OPTIONS = {
  islands: { type: "string" },
  iterations: { type: "string" },
  seed: { type: "string" },
  plant: { type: "string" },
  json: { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const;

/** Undefined: asked for help. */
export function readTxnFlags(args: readonly string[], freshSeed: () => number) {
  const { values, positionals } = parsedArgs(args, OPTIONS);
  if (values.help === true) return undefined;
  if (positionals.length > 0) throw new UsageError(`chaos txn takes options only, not ${positionals[0]}`);
  return {
    islands: whole("islands", values.islands, ISLANDS, ISLANDS_MAX) ?? ISLANDS,
    iterations: whole("iterations", values.iterations, 1, 1_000_000) ?? ITERATIONS,
    seed: whole("seed", values.seed, 0, Number.MAX_SAFE_INTEGER) ?? freshSeed(),
    plant: values.plant,
    json: values.json === true,
  };
}
