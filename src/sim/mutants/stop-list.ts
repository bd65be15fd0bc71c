// The planted mistakes about agents that are stopped (trap 81): each must be found by the simulation of jobs, whose leavers
// (sim/jobs/leavers.ts) run the agent of production.

import { inRunsOf } from "./jobs-runs.ts";
import type { Mutant } from "./patch.ts";

const POLLS = "agent/polls.ts";
const AGENT = "agent/agent.ts";
const AGENTS = "core/jobs/decide/agents.ts";
const LEASING = "controller/jobs/leasing.ts";

/** The runs that have leavers. */
const inRunsWithLeavers = inRunsOf({
  moonlights: false,
  clocks: "near",
  faults: 2,
  wallJumps: 0,
  schedules: 0,
  outages: 0,
});

export const STOP_MUTANTS: readonly Mutant[] = [
  inRunsWithLeavers("an-agent-that-stops-has-no-last-poll", "trap 81", {
    file: POLLS,
    find: "    await this.#handBack();\n",
  }),
  inRunsWithLeavers("a-last-poll-calls-the-one-in-flight-answered", "trap 81", {
    file: POLLS,
    find: "{ ...nothing, agentEpoch, poll, answered: this.#answered },",
    replace: "{ ...nothing, agentEpoch, poll, answered: poll - 1 },",
  }),
  inRunsWithLeavers("a-stop-does-not-wait-for-its-last-poll", "trap 81", {
    file: AGENT,
    find: "crew.attempts.size === 0 && polls?.isOver !== false);",
    replace: "crew.attempts.size === 0);",
  }),
  inRunsWithLeavers("a-stop-keeps-what-does-not-end", "trap 81", {
    file: AGENT,
    find: "    for (const attempt of left) handBack(attempt);\n",
  }),
  inRunsWithLeavers("what-was-never-delivered-counts-as-a-loss", "trap 81", {
    file: AGENTS,
    find: '{ cause: "undelivered", error: null, mayRetry: true }',
    replace: '{ cause: "lost", error: null, mayRetry: true }',
  }),
  inRunsWithLeavers("a-poll-that-wants-nothing-takes-nothing-back", "trap 81", {
    file: LEASING,
    find: "const takenBack = this.#takeBack(call);",
    replace: "const takenBack = call.max === 0 ? null : this.#takeBack(call);",
  }),
];
