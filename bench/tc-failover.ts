// `npm run bench -- tc-failover [--runs N] [--alone] [--json]`: three islands with TLS lose the leader of their coordinators; how long until the next one
// acts, next to a key under a lease on etcd in the same run, in turns.
//
// - leave: the leader leaves by `POST /v1/tc/cluster/leave`; the time runs from the end of its work. What comes before that (all others answer, the
//   registry is changed) happens while it still leads. kill: kill -9. stop: SIGSTOP, and SIGCONT when another one acts.
// - The time runs until the next leader's work begins, by the logs of the islands, in whole milliseconds of one clock. Before each run all agree.
// - etcd: a lease of the same length, renewed as often. leave: it is revoked; kill: it is renewed no more. A holder that stops is the same to etcd.

import { parseArgs } from "node:util";
import { seededRandom } from "../src/core/kit/random.ts";
import { LEASE_RENEW_MS } from "../src/core/lease/limits.ts";
import { TestIslands } from "../test/archipelago/test-islands.ts";
import { type Figures, figuresOf } from "../test/chaos/figures.ts";
import { MEASURED, TcFaults } from "../test/chaos/tc-faults.ts";
import { TcJudge } from "../test/chaos/tc-judge.ts";
import { counted, say } from "./stage.ts";
import { EtcdElection } from "./tc-etcd.ts";

const RUNS = 30;
const EXIT_INTERRUPTED = 130;
const PROGRESS_EVERY = 5;

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: { runs: { type: "string" }, alone: { type: "boolean" }, json: { type: "boolean" } },
});
const runs = counted("runs", values.runs, RUNS);
// The hooks on this process's exit end what it started.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(EXIT_INTERRUPTED));

const result = await main();
console.log(people(result));
if (values.json === true) console.log(JSON.stringify(result));

async function main() {
  say("starting three islands");
  await using islands = await TestIslands.start();
  const etcd = values.alone === true ? null : await EtcdElection.start();
  try {
    const random = seededRandom(1);
    const faults = new TcFaults({ islands, judge: new TcJudge(islands), random });
    const theirs = { leave: [] as number[], kill: [] as number[] };
    for (let run = 1; run <= runs; run++) {
      for (const kind of MEASURED) {
        await faults.measure(kind);
        await islands.settled();
      }
      // A lease is as far through as chance has it.
      if (etcd !== null)
        for (const kind of ["leave", "kill"] as const)
          theirs[kind].push(await etcd.failover(kind, random.below(LEASE_RENEW_MS)));
      if (run % PROGRESS_EVERY === 0) say(`${run}/${runs}`);
    }
    const ours = (kind: (typeof MEASURED)[number]) => figuresOf(faults.measured.get(kind)!);
    return {
      bench: "tc-failover",
      runs,
      tenure: { leave: ours("leave-leader"), kill: ours("kill-leader"), stop: ours("stop-leader") },
      peer:
        etcd === null
          ? null
          : {
              name: "etcd",
              version: etcd.cluster.version,
              leave: figuresOf(theirs.leave),
              kill: figuresOf(theirs.kill),
            },
    };
  } finally {
    await etcd?.end();
  }
}

function people({ tenure, peer }: Awaited<ReturnType<typeof main>>): string {
  return [line("tenure", tenure), ...(peer === null ? [] : [line(`${peer.name} ${peer.version}`, peer)])].join("\n");
}

function line(name: string, all: { readonly leave: Figures; readonly kill: Figures; readonly stop?: Figures }): string {
  const stop = all.stop === undefined ? "" : `; stop ${shown(all.stop)}`;
  return `${name}: leave ${shown(all.leave)}; kill ${shown(all.kill)}${stop}`;
}

function shown({ p50_ms, p99_ms, max_ms }: Figures): string {
  return `p50 ${p50_ms} ms, p99 ${p99_ms} ms, max ${max_ms} ms`;
}
