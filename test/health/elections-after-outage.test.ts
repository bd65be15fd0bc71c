// The vote that ends an outage is won by a node that is still starting: it has to be in what that node shows and counts
// (npm run test:long).

import { expect, onTestFinished, test } from "vitest";
import { startTenureCluster } from "../servers/index.ts";

const LIMIT_MS = 120_000;
/** Shorter than the start of a node, and longer than a beat is late on a busy machine. */
const SOON = { election_timeout_min_ms: 80, election_timeout_max_ms: 160, heartbeat_interval_ms: 20 };

test("the winner after an outage of the majority shows its win, and counts it", { timeout: LIMIT_MS }, async () => {
  const cluster = await startTenureCluster({ election: SOON });
  onTestFinished(() => cluster.end());
  const [last, ...others] = cluster.nodes;
  await Promise.all(cluster.nodes.map((node) => node.kill9()));
  // The third stays away: whoever wins has just started.
  for (const node of others) node.start();
  const winner = cluster.node(await cluster.waitForLeader(last!.id));
  const { term, elections } = (await winner.view())!;
  expect(elections, `of term ${term}`).toContainEqual(
    expect.objectContaining({ term, stage: "vote", result: "won", candidate: expect.stringContaining(winner.id) }),
  );
  const { body } = await winner.call<{ readonly text: string }>("/metrics", { key: cluster.key });
  expect(Number(/^tenure_election_count(?:\{.*\})? (\d+)/m.exec(body.text)?.[1])).toBeGreaterThan(0);
});
