// `npm run bench -- idle [--seconds N] [--json]`: what three nodes cost that have nothing to do, each a supervisor with a controller
// and, where it does not lead, an agent. They are the built package, as a user runs it. Next to them a bare Node, and etcd where it
// is on PATH. Memory is what is resident at the end, shared pages included; of the nodes that have a part, the largest counts. Linux only.

import { execFileSync, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startTenureCluster, type TenureCluster, waitFor } from "../test/servers/index.ts";
import { EtcdCluster } from "./etcd-cluster.ts";
import { familyOf, processorTimeOf, residentMb, spentBetween, totalOf } from "./processor-time.ts";
import { counted, rounded, say } from "./stage.ts";

const SECONDS = 120;
/** What a start leaves to do. */
const SETTLE_SECONDS_MAX = 20;
const MAIN = fileURLToPath(new URL("../packages/tenure-server/dist/cli/main.js", import.meta.url));
const BARE = "setInterval(() => undefined, 1_000)";

interface Part {
  readonly part: string;
  readonly pid: number;
}

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: { seconds: { type: "string" }, json: { type: "boolean" } },
});
const seconds = counted("seconds", values.seconds, SECONDS);
say("building the package");
execFileSync("npm", ["run", "--silent", "build:server"], { stdio: ["ignore", "ignore", "inherit"] });
const cluster = await startTenureCluster({ supervised: { capacity: 4 }, prepare: (node) => (node.main = MAIN) });
const etcd = await EtcdCluster.start();
const bare = spawn(process.execPath, ["-e", BARE], { stdio: "ignore" });
try {
  const result = await measured(cluster);
  for (const { part, mb, core_percent: percent, of_bare_node: ratio } of result.rows)
    console.log(`${part.padEnd(24)} ${mb} MB (${ratio} × bare Node), ${percent} % of a core`);
  if (values.json === true) console.log(JSON.stringify(result));
} finally {
  bare.kill("SIGKILL");
  await etcd?.end();
  await cluster.end();
}

async function measured(nodes: TenureCluster) {
  say(`${seconds} seconds of nothing`);
  await sleep(Math.min(seconds, SETTLE_SECONDS_MAX) * 1_000);
  const term = await termOf(nodes);
  let own: Part[] = [];
  await waitFor("an agent on each node that does not lead", async () => {
    own = await partsOf(nodes);
    return own.filter(({ part }) => part === "agent").length === nodes.nodes.length - 1;
  });
  const parts = [
    { part: "bare Node", pid: bare.pid! },
    ...own,
    ...(etcd?.pids ?? []).map((pid) => ({ part: "etcd", pid })),
  ];
  const before = parts.map(({ part, pid }) => processorTimeOf([{ label: part, pid }]));
  const fromMs = performance.now();
  await sleep(seconds * 1_000);
  const tookMs = performance.now() - fromMs;
  const seen = parts.map(({ part, pid }, at) => {
    const spentUs = totalOf(spentBetween(before[at]!, processorTimeOf([{ label: part, pid }])));
    return { part, mb: residentMb(pid), percent: spentUs / (tookMs * 10) };
  });
  if ((await termOf(nodes)) !== term) throw new Error("somebody was elected meanwhile: these nodes were not idle");
  const rows = [...new Set(seen.map(({ part }) => part))].map((part) => {
    const same = seen.filter((one) => one.part === part);
    const mb = Math.max(...same.map((one) => one.mb));
    return {
      part,
      mb: rounded(mb, 1),
      of_bare_node: rounded(mb / seen[0]!.mb, 2),
      core_percent: rounded(Math.max(...same.map(({ percent }) => percent)), 2),
    };
  });
  return { bench: "idle", seconds, node: process.version, etcd: etcd?.version ?? null, rows };
}

async function termOf(nodes: TenureCluster): Promise<number | undefined> {
  return (await nodes.node(await nodes.leader()).view())?.term;
}

async function partsOf(nodes: TenureCluster): Promise<Part[]> {
  const leader = await nodes.leader();
  return nodes.nodes.flatMap(({ id, pid, controllerPid }) => {
    const agents = familyOf(pid!).filter((one) => one !== pid && one !== controllerPid);
    return [
      { part: "supervisor", pid: pid! },
      { part: id === leader ? "controller, leading" : "controller, following", pid: controllerPid! },
      ...agents.map((agent) => ({ part: "agent", pid: agent })),
    ];
  });
}
