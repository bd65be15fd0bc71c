// What an agent's log may not hold. Who has its session may report results in its name, and end its jobs.

import { expect, test } from "vitest";
import { LeaseSecrets } from "../../src/controller/jobs/lease-secrets.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import { startApi } from "../api/test-api.ts";
import { waitFor } from "../servers/index.ts";
import { TestAgent } from "./test-agent.ts";

test("whoever reads an agent's log can't speak for it: its session is there as the cluster shows it, and its key not at all", async () => {
  await using api = await startApi();
  api.cluster.lead();
  const sessions = new Set<string>();
  const lease = api.jobs.lease.bind(api.jobs);
  api.jobs.lease = (call, signal) => {
    sessions.add(call.agent.session);
    return lease(call, signal);
  };
  const env = { TENURE_API_KEY: "agent-key" };
  const agent = new TestAgent("builder", [api.url], ["--log-level", "trace"], { env });
  await agent.said("started");
  await waitFor("it to poll", () => sessions.size > 0);
  agent.child.kill("SIGTERM");
  expect(await agent.exit).toBe(0);
  const [session, ...others] = sessions;
  expect(others).toEqual([]);
  expect(session!.length).toBeGreaterThan(15);
  const [started] = agent.lines("started");
  expect(started).toMatchObject({ session: new LeaseSecrets(systemDigest).sessionHash(session!) });
  expect(agent.stderr).not.toContain(session);
  expect(agent.stderr).not.toContain(env.TENURE_API_KEY);
});
