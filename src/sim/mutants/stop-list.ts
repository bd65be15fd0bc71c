// The planted mistakes about agents that are stopped (trap 81): each must be found by the simulation of jobs, whose leavers
// (sim/jobs/leavers.ts) run the agent of production.

import type { Edit, Mutant } from "./patch.ts";

const POLLS = "agent/polls.ts";
const AGENT = "agent/agent.ts";
const AGENTS = "core/jobs/decide/agents.ts";
const LEASING = "controller/jobs/leasing.ts";

/** In runs that have leavers. */
const PINS = { moonlights: false, clocks: "near", faults: 2, wallJumps: 0, schedules: 0, outages: 0 } as const;

function mutant(name: string, ...edits: readonly Edit[]): Mutant {
  return { name, breaks: "trap 81", edits, subject: "jobs", limits: { pins: PINS } };
}

export const STOP_MUTANTS: readonly Mutant[] = [
  mutant("an-agent-that-stops-has-no-last-poll", {
    file: POLLS,
    find: "    await this.#handBack();\n",
    replace: "",
  }),
  mutant("a-last-poll-calls-the-one-in-flight-answered", {
    file: POLLS,
    find: "{ ...nothing, agentEpoch, poll, answered: this.#answered },",
    replace: "{ ...nothing, agentEpoch, poll, answered: poll - 1 },",
  }),
  mutant("a-stop-does-not-wait-for-its-last-poll", {
    file: AGENT,
    find: "crew.attempts.size === 0 && polls?.isOver !== false);",
    replace: "crew.attempts.size === 0);",
  }),
  mutant("a-stop-keeps-what-does-not-end", {
    file: AGENT,
    find: "    for (const attempt of left) handBack(attempt);\n",
    replace: "",
  }),
  mutant("what-was-never-delivered-counts-as-a-loss", {
    file: AGENTS,
    find: '{ cause: "undelivered", error: null, mayRetry: true }',
    replace: '{ cause: "lost", error: null, mayRetry: true }',
  }),
  mutant("a-poll-that-wants-nothing-takes-nothing-back", {
    file: LEASING,
    find: "const takenBack = this.#takeBack(call);",
    replace: "const takenBack = call.max === 0 ? null : this.#takeBack(call);",
  }),
];
