import { describe, expect, it } from "vitest";
import { ManualClock } from "../../engine/test-engine.ts";
import type { AgentInfo } from "../../ports/jobs.ts";
import { JobsPolls } from "./polls.ts";

interface Call {
  readonly agent: AgentInfo;
  readonly max: number;
}

const signal = new AbortController().signal;

function agentOf(name: string, labels: Record<string, string>, kinds = ["work"]): AgentInfo {
  return { name, session: name, kinds, labels, platform: "linux", capacity: 1 };
}

function demandOf(kind: string, labels: Record<string, string>) {
  const asked: string[] = [];
  const missingAt = (agent: AgentInfo): string | null => {
    asked.push(agent.name);
    const isFit = agent.kinds.includes(kind) && Object.entries(labels).every(([name, is]) => agent.labels[name] === is);
    return isFit ? null : "something";
  };
  return { kind, labels, missingAt, asked };
}

function namesOf(polls: JobsPolls<Call>, demand: ReturnType<typeof demandOf>): string[] {
  return [...polls.fitting(demand)].flatMap((queue) => [...queue].map(({ call }) => call.agent.name));
}

describe("agents that wait", () => {
  it("with a label of their own each are not asked about jobs that are for others", () => {
    const polls = new JobsPolls<Call>(new ManualClock());
    for (let at = 0; at < 5_000; at++) {
      void polls.park({ agent: agentOf(`a${at}`, { host: `h${at}`, zone: "z" }), max: 1 }, 60_000, signal);
    }
    const one = demandOf("work", { zone: "z", host: "h7" });
    expect(namesOf(polls, one)).toEqual(["a7"]);
    expect(one.asked).toEqual(["a7"]);
    for (const none of [demandOf("another", {}), demandOf("work", { host: "nowhere" })]) {
      expect(namesOf(polls, none)).toEqual([]);
      expect(none.asked).toEqual([]);
    }
    expect(namesOf(polls, demandOf("work", {}))).toHaveLength(5_000);
  });

  it("are found by each of their kinds, in the order in which they came, until they are woken", async () => {
    const polls = new JobsPolls<Call>(new ManualClock());
    const kinds = ["work", "test"];
    const parked = ["a", "b"].map((name) =>
      polls.park({ agent: agentOf(name, { x: "1" }, kinds), max: 1 }, 60_000, signal),
    );
    void polls.park({ agent: agentOf("news", { x: "1" }, kinds), max: 0 }, 60_000, signal);
    expect(namesOf(polls, demandOf("test", { x: "1" }))).toEqual(["a", "b"]);
    polls.ofAgent("a")!.wake();
    await parked[0];
    expect(namesOf(polls, demandOf("work", {}))).toEqual(["b"]);
    polls.wakeAll();
    await parked[1];
    expect([polls.size, [...polls.kinds.keys()]]).toEqual([0, []]);
  });

  it("are one each: the newest poll of an agent ends the one before", async () => {
    const polls = new JobsPolls<Call>(new ManualClock());
    const first = polls.park({ agent: agentOf("a", {}), max: 1 }, 60_000, signal);
    void polls.park({ agent: agentOf("a", {}), max: 1 }, 60_000, signal);
    await first;
    expect(polls.size).toBe(1);
    // Another agent's session may be called the same.
    void polls.park({ agent: { ...agentOf("b", {}), session: "a" }, max: 1 }, 60_000, signal);
    expect(polls.size).toBe(2);
  });

  it("are not parked for who is gone already", async () => {
    const polls = new JobsPolls<Call>(new ManualClock());
    const gone = new AbortController();
    gone.abort();
    await polls.park({ agent: agentOf("a", {}), max: 1 }, 60_000, gone.signal);
    expect(polls.size).toBe(0);
  });
});
