import { expect, it } from "vitest";
import type { AgentView, JobBrief } from "../../client/index.ts";
import { agentDetails, agentObject, agentsTable, agentText } from "./view.ts";

const AGENT: AgentView = {
  name: "a1",
  session: "s-1",
  kinds: ["build", "test"],
  labels: { zone: "a", disk: "s\u001B[31msd" },
  platform: "linux-x64",
  capacity: 4,
  state: "online",
  registeredAtMs: 0,
  running: 1,
  epoch: 17,
  owner: "key:builders",
};
const JOB = { id: "j1", kind: "build", state: "building" } as JobBrief;

it("agents are a table, in which what others wrote can't move the cursor", () => {
  expect(agentsTable([AGENT, { ...AGENT, name: "other", state: "offline", running: 0, labels: {} }])).toBe(
    [
      "NAME   STATE    RUNS  PLATFORM   REGISTERED                KINDS       LABELS\n",
      "a1     online   1/4   linux-x64  1970-01-01T00:00:00.000Z  build,test  zone=a,disk=s?[31msd\n",
      "other  offline  0/4   linux-x64  1970-01-01T00:00:00.000Z  build,test  -\n",
    ].join(""),
  );
});

it("one agent is a page with the jobs that it holds", () => {
  expect(agentText(AGENT, [JOB])).toBe(
    [
      "name        a1\n",
      "state       online\n",
      "kinds       build, test\n",
      "labels      zone=a,disk=s?[31msd\n",
      "platform    linux-x64\n",
      "runs        1 of 4 at once\n",
      "session     s-1\n",
      "epoch       17\n",
      "owner       key:builders\n",
      "registered  1970-01-01T00:00:00.000Z\n",
      "job         j1 build building\n",
    ].join(""),
  );
});

it("for programs it is an object, with what others wrote as it is", () => {
  expect(agentObject(AGENT)).toEqual({
    name: "a1",
    state: "online",
    kinds: ["build", "test"],
    labels: AGENT.labels,
    platform: "linux-x64",
    capacity: 4,
    running: 1,
    session: "s-1",
    epoch: 17,
    owner: "key:builders",
    registered_at: "1970-01-01T00:00:00.000Z",
  });
  expect(agentDetails(AGENT, [JOB]).jobs).toEqual([{ id: "j1", kind: "build", state: "building" }]);
});
