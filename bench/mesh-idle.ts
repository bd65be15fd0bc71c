// What links cost that have nothing to do: a site with ten children, against the same site before they came, and against one that is standalone.

import { setTimeout as sleep } from "node:timers/promises";
import { CALM_ELECTION, startTenureCluster } from "../test/servers/index.ts";
import { MeshTree } from "./mesh-sites.ts";
import { processorTimeOf, residentMb, spentBetween, totalOf } from "./processor-time.ts";
import { rounded, say } from "./stage.ts";

const LINKS = 10;
/** What a start leaves to do. */
const SETTLE_MS = 10_000;
const MEASURED_MS = 15_000;
const PERCENT_US_PER_MS = 10;

interface Rest {
  readonly mb: number;
  readonly percent: number;
}

export async function idle() {
  say(`${LINKS} idle links`);
  const children = Array.from({ length: LINKS }, (_, at) => `s${at + 1}`);
  const standalone = await startTenureCluster({ nodes: 1, election: CALM_ELECTION });
  let tree: MeshTree | null = null;
  try {
    tree = await MeshTree.start(1, children, LINKS);
    const pids = [standalone.nodes[0]!.pid!, tree.author.node.pid!];
    const [, unlinked] = await resting(pids);
    for (const id of children) await tree.add(id, []);
    await tree.linked();
    const [alone, linked] = await resting(pids);
    return { links: LINKS, over_unlinked: over(linked!, unlinked!), over_standalone: over(linked!, alone!) };
  } finally {
    await tree?.end();
    await standalone.end();
  }
}

async function resting(pids: readonly number[]): Promise<readonly Rest[]> {
  await sleep(SETTLE_MS);
  const before = pids.map((pid) => processorTimeOf([{ label: "", pid }]));
  const fromMs = performance.now();
  await sleep(MEASURED_MS);
  const tookMs = performance.now() - fromMs;
  return pids.map((pid, at) => ({
    mb: residentMb(pid),
    percent: totalOf(spentBetween(before[at]!, processorTimeOf([{ label: "", pid }]))) / (tookMs * PERCENT_US_PER_MS),
  }));
}

function over(one: Rest, other: Rest) {
  return { mb: rounded(one.mb - other.mb, 1), core_percent: rounded(one.percent - other.percent, 2) };
}
