// Issue 19: what a user runs on Tenure's servers goes on by itself after the cluster was recovered by force, or restored from a
// snapshot of before: `tenure run` and an elector of the library lead again, in higher epochs, and nobody had to restart them. Nodes
// of the old cluster that come back are not used any more, although a majority of them leads.

import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Elector } from "../../src/entry/index.ts";
import { start } from "../cli/test-tenure.ts";
import { accessTo, done, leadsAlone, letIn } from "../server/test-last-resorts.ts";
import {
  CALM_ELECTION,
  CLIENT_KEY,
  startTenureCluster,
  type TenureCluster,
  type TenureNode,
  waitFor,
} from "../servers/index.ts";
import { electorAt, freshScope, quickServers } from "./test-electors.ts";

const TEST_MS = 300_000;
const AGAIN_MS = 90_000;
/** One after the other, while everybody waits. */
const RECOVERIES = 3;
const COMMAND = 'console.log("epoch", process.env.TENURE_EPOCH); setInterval(() => undefined, 60_000);';

let cluster: TenureCluster;

beforeAll(async () => {
  cluster = await startTenureCluster({ election: CALM_ELECTION });
}, 120_000);

afterAll(() => cluster?.end());

/** An elector of the library that leads whenever it can, and every epoch in which it did. */
function library(scope: string): {
  readonly elector: Elector;
  readonly epochs: number[];
  readonly failures: unknown[];
} {
  const { elector } = electorAt(quickServers(cluster.urls, { key: CLIENT_KEY }), scope, "library");
  const epochs: number[] = [];
  const failures: unknown[] = [];
  const untilEnd = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  elector
    .lead(async (term) => {
      epochs.push(term.epoch);
      await untilEnd(term.signal);
    })
    .catch((error: unknown) => failures.push(error));
  return { elector, epochs, failures };
}

/** `tenure run`, and every epoch in which its command was started. */
function runner(scope: string): { readonly epochs: () => number[]; readonly isAlive: () => boolean; stderr(): string } {
  const backend = `${cluster.urls.join(",")}?tenure_api_key=${CLIENT_KEY}&tenure_server_timeout_ms=4000`;
  const run = start(
    ["run", "--scope", scope, "--backend", backend, "--", process.execPath, "-e", COMMAND],
    {},
    TEST_MS,
  );
  onTestFinished(async () => {
    run.child.kill("SIGTERM");
    await run.ended;
  });
  return {
    epochs: () => [...run.said.stdout.matchAll(/epoch (\d+)/g)].map(([, epoch]) => Number(epoch)),
    isAlive: () => run.child.exitCode === null && run.child.signalCode === null,
    stderr: () => run.said.stderr,
  };
}

test(
  `after ${RECOVERIES} recoveries by force everybody campaigns again, above all before, and nobody goes back to the old cluster`,
  async () => {
    const [survivor, ...others] = cluster.nodes as [TenureNode, TenureNode, TenureNode];
    const { cluster_id: old } = (await survivor.view())!;
    const [led, ran] = [freshScope(), freshScope()];
    const { elector, epochs, failures } = library(led);
    const runs = [runner(ran), runner(ran)];
    const runEpochs = (): number[] => runs.flatMap((run) => run.epochs());
    await waitFor("both to lead", () => epochs.length === 1 && runEpochs().length === 1);
    const before = Math.max(...epochs, ...runEpochs());
    for (const node of cluster.nodes) await node.kill9();
    for (let time = 0; time < RECOVERIES; time++) {
      await done("server", "recover", "--force-new-cluster", "--config", survivor.configFile);
    }
    await leadsAlone(survivor);
    const isGoingOn = (): boolean => epochs.length >= 2 && runEpochs().length >= 2;
    await waitFor(
      "both to lead again",
      () => isGoingOn() || failures.length > 0 || !runs.every((run) => run.isAlive()),
      AGAIN_MS,
    );
    expect({ failures, stderr: runs.map((run) => (run.isAlive() ? "" : run.stderr())) }).toEqual({
      failures: [],
      stderr: ["", ""],
    });
    expect(Math.min(Math.max(...epochs), Math.max(...runEpochs()))).toBeGreaterThan(before);
    expect(await survivor.view()).toMatchObject({ ancestors: expect.arrayContaining([old]) as string[] });

    // Two of three of the old cluster come back with their disks: they lead it again, and nobody here listens to them.
    for (const node of others) node.start();
    await waitFor("the old cluster to be led", async () => {
      const views = await Promise.all(others.map((node) => node.view()));
      return views.some((view) => view?.role === "LEADER" && view.cluster_id === old);
    });
    const [beats, terms] = [elector.stats().heartbeatUpdateMs.count, epochs.length];
    await waitFor("more beats", () => elector.stats().heartbeatUpdateMs.count >= beats + 5);
    expect([epochs.length, elector.gate.isLeader]).toEqual([terms, true]);
    const last = epochs.at(-1)!;
    // Also a campaign, which asks everybody who leads.
    await done("scope", "resign", led, "--force", "--backend", `${survivor.url}?tenure_api_key=${cluster.key}`);
    await waitFor("it to lead once more", () => epochs.length > terms && elector.gate.isLeader);
    expect(epochs.at(-1)! - last).toBeGreaterThan(0);
    expect(epochs.at(-1)! - last).toBeLessThan(2 ** 32);
    await letIn(cluster, survivor, others);
    expect([failures, runs.every((run) => run.isAlive())]).toEqual([[], true]);
  },
  TEST_MS,
);

test(
  "after a restore from a snapshot of before, everybody campaigns again, above what the snapshot does not know",
  async () => {
    const [first, ...others] = cluster.nodes as [TenureNode, TenureNode, TenureNode];
    const file = join(cluster.directory, "nightly.snap");
    await done("cluster", "snapshot", "save", file, ...accessTo(cluster));
    // Granted after it was saved.
    const { epochs, failures } = library(freshScope());
    const run = runner(freshScope());
    await waitFor("both to lead", () => epochs.length === 1 && run.epochs().length === 1);
    const before = Math.max(...epochs, ...run.epochs());
    for (const node of cluster.nodes) await node.kill9();
    first.wipe();
    expect(await done("server", "restore", "--snapshot", file, "--config", first.configFile)).toContain(
      "by themselves",
    );
    await leadsAlone(first);
    const isGoingOn = (): boolean => epochs.length >= 2 && run.epochs().length >= 2;
    await waitFor("both to lead again", () => isGoingOn() || failures.length > 0 || !run.isAlive(), AGAIN_MS);
    expect([failures, run.isAlive() ? "" : run.stderr()]).toEqual([[], ""]);
    expect(Math.min(epochs.at(-1)!, run.epochs().at(-1)!)).toBeGreaterThan(before);
    await letIn(cluster, first, others);
    expect([failures, run.isAlive()]).toEqual([[], true]);
  },
  TEST_MS,
);
