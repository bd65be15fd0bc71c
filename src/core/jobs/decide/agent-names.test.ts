// Who may call under an agent's name: the process that registered last, and the caller to whom the name belongs.

import { describe, expect, it } from "vitest";
import type { AgentCaller } from "../../../ports/jobs.ts";
import { canonicalJson } from "../../events/index.ts";
import { AGENT_PLACE_KEPT_MS, AGENT_SESSIONS_KEPT, INTEGER_MAX } from "../../kit/limits.ts";
import { JobsBook } from "../state/book.ts";
import type { CommandOf } from "../commands.ts";
import type { Registered } from "../events.ts";
import type { BookLimits } from "../state/state.ts";
import { newBook } from "../../../../test/jobs-book.ts";
import { agent, Desk, replayed, REQUEST, spec } from "../test-desk.ts";

type Lease = Partial<CommandOf<"lease">>;

const BUILDERS: AgentCaller = { owner: "key:builders", mayTakeOver: false };
const OTHERS: AgentCaller = { owner: "key:others", mayTakeOver: false };
const MALLORY: AgentCaller = { owner: "key:mallory", mayTakeOver: false };
const OPERATOR: AgentCaller = { owner: "key:root", mayTakeOver: true };
const RESTARTS = AGENT_SESSIONS_KEPT + 2;

/** Refused: the code. Otherwise the epoch of the name. */
function call(desk: Desk, session: string, options: Lease = {}): string | number {
  const who = agent("a1", { session });
  const decision = desk.propose<"lease">({ kind: "lease", agent: who, max: 0, ttlMs: 10_000, ...options });
  if (decision.kind === "refused") return decision.code;
  desk.book.commit(desk.book.headSequence);
  return desk.book.applied.agentEpoch("a1")!;
}

function remove(desk: Desk): void {
  desk.do<"remove-agent">({ kind: "remove-agent", request: REQUEST, name: "a1" });
}

function owner(desk: Desk): string | undefined {
  return desk.book.applied.agents().find(({ name }) => name === "a1")?.owner;
}

describe("trap 75: an agent's epoch", () => {
  it("grows with each process of a name, also past its removal and a restart from a snapshot", () => {
    const desk = new Desk(newBook());
    const first = call(desk, "s1");
    expect(call(desk, "s1", { agentEpoch: Number(first) })).toBe(first);
    const second = call(desk, "s2");
    remove(desk);
    const third = call(desk, "s3");
    expect([second > first, third > second]).toEqual([true, true]);
    const restored = newBook();
    restored.restore(desk.book.snapshot());
    expect(restored.applied.agentEpoch("a1")).toBe(third);
    expect(replayed(newBook(), desk.events).applied.agentEpoch("a1")).toBe(third);
    expect(call(new Desk(restored, restored.appliedSequence), "s4")).toBeGreaterThan(Number(third));
  });

  it.each([
    ["with its epoch", {}],
    ["of an older release, which has leases or was answered", { agentEpoch: undefined, goesOn: true }],
  ] as const)("refuses a process that stood still, %s, however many came after it", (_what, options) => {
    const desk = new Desk(newBook());
    const agentEpoch = Number(call(desk, "frozen"));
    for (let restart = 0; restart < RESTARTS; restart++) call(desk, `s${restart}`);
    const events = desk.events.length;
    expect(call(desk, "frozen", { agentEpoch, ...options })).toBe("STALE_EPOCH");
    remove(desk);
    expect(call(desk, "frozen", { agentEpoch, ...options })).toBe("STALE_EPOCH");
    expect(desk.events.length).toBe(events + 1);
    // Another start of it is another process.
    expect(call(desk, "frozen-2")).toBeGreaterThan(agentEpoch);
  });

  it("refuses a process whose name was forgotten to make room: others may have had it meanwhile", () => {
    const desk = new Desk(
      new JobsBook({ canonical: (value) => canonicalJson(value, INTEGER_MAX), limits: { agentsMax: 1 } }),
    );
    const agentEpoch = Number(call(desk, "frozen"));
    desk.do<"agent-offline">({ kind: "agent-offline", name: "a1", session: "frozen" });
    desk.lease(agent("a2"), 0);
    expect(desk.book.applied.agents()).toMatchObject([{ name: "a2" }]);
    desk.do<"agent-offline">({ kind: "agent-offline", name: "a2", session: "a2-s1" });
    expect(call(desk, "frozen", { agentEpoch })).toBe("STALE_EPOCH");
    // Whoever says nothing about it is taken for a new one, as before.
    expect(call(desk, "other")).toBeGreaterThan(agentEpoch);
  });

  it("is not needed where it is not known: of a snapshot of an older release the session goes on", () => {
    const desk = new Desk(newBook());
    call(desk, "s1");
    const restored = newBook();
    const text = Buffer.from(desk.book.snapshot()).toString("latin1");
    const json = canonicalJson({ ...agent("a1", { session: "s1" }) }, INTEGER_MAX);
    const withEpoch = json.replace(`"kinds"`, `"epoch":1,"kinds"`);
    expect(text).toContain(withEpoch);
    const lengths = [withEpoch.length, json.length].map((length) => String.fromCodePoint(0, 0, 0, length));
    const old = text.replace(lengths[0]! + withEpoch, lengths[1]! + json);
    restored.restore(Buffer.from(old, "latin1"));
    const other = new Desk(restored, restored.appliedSequence);
    expect(other.book.applied.agentEpoch("a1")).toBeUndefined();
    const lease = { kind: "lease", agent: agent("a1", { session: "s1" }), max: 0, ttlMs: 10_000 } as const;
    expect(other.decide<"lease">({ ...lease, agentEpoch: 1 })).toMatchObject({ kind: "decided", drafts: [] });
  });
});

describe("an agent's name", () => {
  it("belongs to the caller that registered it: another is refused, told what to do, and changes nothing", () => {
    const desk = new Desk(newBook());
    const [jobId] = desk.submit(spec());
    call(desk, "s1", { caller: BUILDERS, max: 1 });
    expect(owner(desk)).toBe("key:builders");
    expect(desk.state(jobId!)).toBe("assigned");
    const lease = { kind: "lease", agent: agent("a1", { session: "s2" }), max: 1, ttlMs: 10_000 } as const;
    expect(desk.decide<"lease">({ ...lease, caller: OTHERS })).toEqual({
      kind: "refused",
      code: "PERMISSION_DENIED",
      message:
        "The name a1 belongs to key:builders, and this call comes from key:others. Give this agent another name, use the key or certificate that registered it, or have an operator remove it: tenure agent remove a1",
    });
    // Also with its session: a secret that leaked is of no use to others.
    expect(call(desk, "s1", { caller: OTHERS })).toBe("PERMISSION_DENIED");
    expect(desk.state(jobId!)).toBe("assigned");
    expect(call(desk, "s2", { caller: BUILDERS })).toBeTypeOf("number");
    expect(desk.state(jobId!)).toBe("pending");
  });

  it("is in the event, and in snapshots", () => {
    const desk = new Desk(newBook());
    call(desk, "s1", { caller: BUILDERS });
    expect(desk.events.at(-1)!.payload as unknown as Registered).toMatchObject({ owner: "key:builders" });
    const restored = newBook();
    restored.restore(desk.book.snapshot());
    expect(restored.applied.agents()).toMatchObject([{ owner: "key:builders" }]);
    expect(restored.snapshot()).toEqual(desk.book.snapshot());
  });

  it("may be taken by an operator, who owns it then, and is nobody's when the agent is removed", () => {
    const desk = new Desk(newBook());
    call(desk, "s1", { caller: BUILDERS });
    const lease = { kind: "lease", agent: agent("a1", { session: "s2" }), max: 0, ttlMs: 10_000 } as const;
    const taken = desk.do<"lease">({ ...lease, caller: OPERATOR });
    expect([taken.takenFrom, owner(desk)]).toEqual(["key:builders", "key:root"]);
    expect(call(desk, "s3", { caller: BUILDERS })).toBe("PERMISSION_DENIED");
    remove(desk);
    expect(call(desk, "s3", { caller: BUILDERS })).toBeTypeOf("number");
    expect(owner(desk)).toBe("key:builders");
  });

  it("stays its owner's through a drain, a silence and a change of what the agent can do", () => {
    const desk = new Desk(newBook());
    call(desk, "s1", { caller: BUILDERS });
    desk.do<"drain-agent">({ kind: "drain-agent", request: REQUEST, name: "a1", draining: true });
    desk.do<"agent-offline">({ kind: "agent-offline", name: "a1", session: "s1" });
    expect(call(desk, "s2", { caller: OTHERS })).toBe("PERMISSION_DENIED");
    // A call that an operator makes with its session is no takeover.
    call(desk, "s1", { caller: OPERATOR, agent: agent("a1", { session: "s1", capacity: 3 }) });
    expect(owner(desk)).toBe("key:builders");
  });

  it("that has no owner yet, of an older release's making, is its living process's, or the next one's", () => {
    const desk = new Desk(newBook());
    call(desk, "s1");
    expect(owner(desk)).toBeUndefined();
    const epoch = call(desk, "s1", { caller: BUILDERS });
    expect([owner(desk), desk.events.length]).toEqual(["key:builders", 2]);
    expect(call(desk, "s1", { caller: BUILDERS })).toBe(epoch);
    expect(desk.events.length).toBe(2);
    expect(call(desk, "s2", { caller: OTHERS })).toBe("PERMISSION_DENIED");
  });
});

describe("room for agents' names", () => {
  /** Refused: the code. Otherwise who is known then. */
  function register(desk: Desk, name: string, owner: string, more: Partial<ReturnType<typeof agent>> = {}): unknown {
    const who = agent(name, more);
    const caller = { owner, mayTakeOver: false };
    const decision = desk.propose<"lease">({ kind: "lease", agent: who, max: 0, ttlMs: 10_000, caller });
    if (decision.kind === "refused") return decision.code;
    desk.book.commit(desk.book.headSequence);
    return desk.book.applied.agents().map((one) => one.name);
  }

  function away(desk: Desk, name: string): void {
    desk.do<"agent-offline">({ kind: "agent-offline", name, session: `${name}-s1` });
  }

  function deskOf(limits: Partial<BookLimits>): Desk {
    return new Desk(new JobsBook({ canonical: (value) => canonicalJson(value, INTEGER_MAX), limits }));
  }

  it("an owner that registers as many as it can takes nobody's name, and leaves room for others", () => {
    const desk = deskOf({ agentsMax: 10 });
    register(desk, "deploy", "key:builders");
    away(desk, "deploy");
    for (let i = 0; i < 9; i++) expect(register(desk, `junk-${i}`, "key:mallory")).toContain("deploy");
    desk.nowMs += AGENT_PLACE_KEPT_MS * 2;
    expect(register(desk, "junk-9", "key:mallory")).toBe("OVERLOADED");
    away(desk, "junk-3");
    // In the place of its own.
    const known = register(desk, "junk-9", "key:mallory");
    expect([known]).toEqual([expect.arrayContaining(["deploy", "junk-9"])]);
    expect(known).not.toContain("junk-3");
    expect(register(desk, "deploy", "key:mallory", { session: "m1" })).toBe("PERMISSION_DENIED");
    expect(register(desk, "deploy", "key:builders", { session: "s2" })).toContain("deploy");
    expect(replayed(newBook(), desk.events).applied.agents()).toHaveLength(10);
  });

  it("where there is none, comes from whoever has most, and from nobody who was there lately", () => {
    const desk = deskOf({ agentsMax: 10 });
    for (let i = 0; i < 4; i++) register(desk, `few-${i}`, "key:few");
    away(desk, "few-0");
    desk.nowMs++;
    for (let i = 0; i < 6; i++) register(desk, `many-${i}`, "key:many");
    away(desk, "many-1");
    away(desk, "many-2");
    // Both are recently.
    expect(register(desk, "new-0", "key:new")).toBe("OVERLOADED");
    desk.nowMs += AGENT_PLACE_KEPT_MS;
    expect(register(desk, "new-0", "key:new")).not.toContain("many-1");
    // Whoever has most gives up its own, also where another's is away for longer; so does one that has no fewer.
    expect(register(desk, "many-6", "key:many")).not.toContain("many-2");
    expect(register(desk, "many-7", "key:many")).toBe("OVERLOADED");
    expect(desk.book.applied.agents().map(({ name }) => name)).toContain("few-0");
  });

  it("is not all one owner's either where its agents say much of themselves", () => {
    const desk = deskOf({ agentBytesMax: 20_000 });
    const labels = { what: "x".repeat(200) };
    let count = 0;
    while (register(desk, `junk-${count}`, "key:mallory", { labels }) !== "OVERLOADED") count++;
    expect(count).toBeGreaterThan(10);
    expect(register(desk, "junk-0", "key:mallory", { labels, session: "again" })).toContain("junk-0");
    expect(register(desk, "web-7", "key:builders")).toContain("web-7");
  });

  it("is counted anew where what was decided never comes to be, and from a snapshot", () => {
    const desk = deskOf({ agentsMax: 10 });
    for (let i = 0; i < 8; i++) register(desk, `junk-${i}`, "key:mallory");
    const at = desk.book.headSequence;
    const last = { kind: "lease", agent: agent("junk-8"), max: 0, ttlMs: 1, caller: MALLORY } as const;
    desk.propose<"lease">(last);
    desk.book.rollback(at);
    const restored = new JobsBook({
      canonical: (value) => canonicalJson(value, INTEGER_MAX),
      limits: { agentsMax: 10 },
    });
    restored.restore(desk.book.snapshot());
    const other = new Desk(restored, restored.appliedSequence);
    expect(register(other, "junk-8", "key:mallory")).toHaveLength(9);
    expect(register(other, "junk-9", "key:mallory")).toBe("OVERLOADED");
  });
});
