// Every node drained, stopped and started again, one after the other, while jobs come and go at 500 a second: what
// docs/runbooks/cluster-rolling-restart.md says, by its commands.

import { expect, it, onTestFinished } from "vitest";
import { auditNodes, compareNodes } from "../chaos/jobs-audit.ts";
import { tenure } from "../cli/test-tenure.ts";
import { startPostgres, startTenureCluster, type TenureCluster, waitFor } from "../servers/index.ts";
import { JobLoad, judgeLoad } from "./test-job-load.ts";

const PER_SECOND = 500;
const BATCH = 5;
/** That nothing hangs. The half second that is promised is a figure of a machine which does nothing else: docs/benchmarks.md. */
const REFUSAL_MS_MAX = 3_000;
const LIMIT_MS = 60_000;
/** Before the first, between and after them: so many jobs go through a cluster that is whole. */
const CALM_JOBS = 1_000;

interface Drained {
  readonly led: boolean;
  readonly leader: string;
  readonly epoch: number;
  readonly took_ms: number;
}

it.each(["embedded", "postgres"] as const)(
  "%s: loses nothing, commits nothing twice, and refuses nothing for long",
  async (backend) => {
    const cluster = await startTenureCluster({
      supervised: { capacity: 1 },
      backend: backend === "postgres" ? await database() : undefined,
    });
    onTestFinished(() => cluster.end());
    const access = ["--url", cluster.urls.join(","), "--key", cluster.key];
    const load = new JobLoad({ urls: cluster.urls, key: cluster.key, perSecond: PER_SECOND, batch: BATCH });
    onTestFinished(() => load.end());
    const { client, accepted } = load;
    await load.start();
    await progress(load);
    const { refusalMs: calmMs } = load.takeWorst();
    const steps = [`${backend}: at worst ${calmMs.toFixed(0)} ms between two answers while nothing is done`];
    for (const { id } of cluster.nodes) {
      const said = await tenure("cluster", "drain", id, ...access, "-o", "json");
      expect(said, said.stderr).toMatchObject({ code: 0, stderr: "" });
      const drained = JSON.parse(said.stdout) as Drained;
      const { leader, epoch } = drained;
      expect(leader).not.toBe(id);
      expect(await cluster.node(id).term(), cluster.node(id).log()).toBe(0);
      cluster.node(id).start();
      await isBack(cluster, id);
      await progress(load);
      const { refusalMs, heldUpMs } = load.takeWorst();
      const terms = (await client.leader()).term - epoch;
      const figures = `${refusalMs.toFixed(0)} ms between two answers, held up ${heldUpMs.toFixed(0)} ms; ${terms} new epochs behind it`;
      steps.push(`${id}${drained.led ? ", which led" : ""}: drained in ${drained.took_ms} ms; ${figures}`);
      expect(refusalMs, steps.join("\n")).toBeLessThanOrEqual(REFUSAL_MS_MAX);
    }
    await load.rest();
    await waitFor("everything to be finished", async () => (await client.stats()).finished >= accepted.size, LIMIT_MS);
    const audits = await auditNodes(cluster.nodes);
    const judgement = judgeLoad(accepted, audits[0]!.events);
    console.info([...steps, JSON.stringify({ ...judgement, rerun: load.rerun })].join("\n"));
    expect(load.refusals).toEqual([]);
    expect(judgement).toMatchObject({ lost: 0, submittedTwice: 0, committedTwice: 0 });
    expect(judgement.jobs).toBeGreaterThan(4 * CALM_JOBS);
    expect(compareNodes(audits)).toEqual([]);
  },
  5 * LIMIT_MS,
);

async function database(): Promise<string> {
  const server = await startPostgres();
  onTestFinished(() => server.end());
  return await server.createDatabase("rolling");
}

async function progress({ accepted }: JobLoad): Promise<void> {
  const goal = accepted.size + CALM_JOBS;
  await waitFor(`${CALM_JOBS} more jobs`, () => accepted.size >= goal, LIMIT_MS);
}

/** Ready, and as the leader sees it next to nothing after. */
async function isBack(cluster: TenureCluster, id: string): Promise<void> {
  await waitFor(
    `${id} to be back`,
    async () => {
      if ((await cluster.node(id).view())?.is_ready !== true) return false;
      const views = await Promise.all(cluster.nodes.map((node) => node.view()));
      const leader = views.find((view) => view?.role === "LEADER");
      const progressOf = leader?.members.find(({ node_id: node }) => node === id)?.progress;
      // On Postgres it is as old as the node's last word, and a job is some three events: a few seconds' worth.
      return progressOf?.healthy === true && progressOf.lag < 10 * PER_SECOND;
    },
    LIMIT_MS,
  );
}
