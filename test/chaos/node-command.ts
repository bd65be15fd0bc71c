// `npm run chaos -- node`: reads the command line, runs on each backend, and reports as text and as one JSON object.

import type { Figures } from "./figures.ts";
import { parsedArgs, UsageError, whole } from "./flags.ts";
import { type NodeRunResult, runNodes } from "./node-run.ts";

const HELP = `npm run chaos -- node [options]

  Three nodes, each a supervisor with a controller and, while it does not lead, a worker that runs real commands. The leader's
  whole node (its supervisor, with which all else ends), or its controller alone, is killed again and again. By the stamps in the
  logs, and by those of the jobs, no node may ever have had an open gate and a living worker, and every job must be completed.
  The machine lives on, so the others see at once that connections end: nothing is said here of one that loses its power.

  --failovers N    on each backend (default 200)
  --p99-ms N       fail where 99 of 100 take longer than that until the next leader has accepted a job
  --backend NAME   embedded (default), postgres, or both, one after the other
  --json           one JSON object as the last line
  --help           this text

exit codes: 0 all of that held; 1 otherwise; 64 wrong use
`;
const FAILOVERS = 200;

const OPTIONS = {
  failovers: { type: "string" },
  backend: { type: "string" },
  "p99-ms": { type: "string" },
  json: { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const;

export async function nodeCommand(args: readonly string[]): Promise<number> {
  const { values, positionals } = parsedArgs(args, OPTIONS);
  if (positionals.length > 0) throw new UsageError(`chaos node takes options only, not ${positionals[0]}`);
  if (values.help === true) {
    process.stdout.write(HELP);
    return 0;
  }
  const failovers = whole("failovers", values.failovers, 1, 100_000) ?? FAILOVERS;
  const runs: NodeRunResult[] = [];
  for (const backend of backendsOf(values.backend ?? "embedded")) {
    const run = await runNodes({
      backend,
      failovers,
      log: (text) => console.error(`chaos node on ${backend}: ${text}`),
    });
    runs.push(run);
    console.log(people(run));
  }
  if (values.json === true) console.log(JSON.stringify({ chaos: "node", node: process.version, runs }));
  const limitMs = whole("p99-ms", values["p99-ms"], 1, 100_000) ?? Infinity;
  const isSlow = runs.some(({ after }) => Math.max(after.node.p99_ms, after.controller.p99_ms) > limitMs);
  if (isSlow) console.error(`chaos node: slower than ${limitMs} ms`);
  return isSlow || runs.some(({ failed }) => failed.length > 0) ? 1 : 0;
}

function backendsOf(name: string): readonly ("embedded" | "postgres")[] {
  if (name === "both") return ["embedded", "postgres"];
  if (name === "embedded" || name === "postgres") return [name];
  throw new UsageError(`--backend is embedded, postgres or both, not ${name}`);
}

function people({
  backend,
  failovers,
  after,
  gates,
  workers,
  jobs,
  handed_back: back,
  lost,
  stamps,
  failed,
}: NodeRunResult): string {
  return [
    `${backend}: ${failovers} failovers; the next job was accepted after`,
    `  the whole node was killed: ${time(after.node)}`,
    `  its controller was killed: ${time(after.controller)}`,
    `  ${gates} gates and ${workers} workers, none at once on a node, nor any of the jobs' own ${stamps} signs of life beside a gate; ${jobs} jobs, ${back} attempts handed back, ${lost} lost`,
    ...failed.map((reason) => `FAILED: ${reason}`),
  ].join("\n");
}

function time({ count, p50_ms, p99_ms, max_ms }: Figures): string {
  return `${count} × p50 ${p50_ms} ms, p99 ${p99_ms} ms, max ${max_ms} ms`;
}
