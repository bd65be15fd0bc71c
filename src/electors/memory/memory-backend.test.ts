// What `testBackend()` does to instances, as a user's test sees it.

import { describe, expect, it, vi } from "vitest";
import { createElector, StaleEpochError } from "../../entry/index.ts";
import { testBackend } from "../../entry/testing.ts";

const scope = "payer";

describe("without faults", () => {
  it("needs no time to be moved: an elector leads at once", async () => {
    await using elector = createElector({ scope, backend: testBackend() });
    expect(await elector.lead(({ epoch }) => epoch)).toBe(1);
  });

  it("is the instance default itself", async () => {
    const backend = testBackend();
    await using elector = createElector({ scope, backend });
    const term = await elector.acquire();
    await backend.freeze("default");
    await backend.advance(backend.timing.serverTimeoutMs);
    expect(elector.gate.isLeader).toBe(false);
    await backend.thaw("default");
    expect(term.signal.aborted).toBe(true);
  });

  it("works under a user's fake timers", async () => {
    vi.useFakeTimers();
    try {
      const backend = testBackend();
      await using elector = createElector({ scope, backend });
      await elector.acquire();
      await backend.advance(60_000);
      expect(elector.gate.isLeader).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  });

  it("takes the latency both ways", async () => {
    const backend = testBackend({ latencyMs: 30 });
    const elector = createElector({ scope, backend });
    const led = elector.lead(() => backend.nowMs);
    await backend.advance(59);
    expect(elector.gate.isLeader).toBe(false);
    await backend.advance(200);
    expect(await led).toBe(60);
  });

  it("trap 44: trust starts when the request left, not when its answer came", async () => {
    const backend = testBackend({ latencyMs: 100 });
    const elector = createElector({ scope, backend });
    void elector.acquire();
    await backend.advance(200);
    const { serverTimeoutMs, marginMs } = backend.timing;
    expect(elector.gate.remainingMs).toBe(serverTimeoutMs - marginMs - 200);
  });

  it("tells the leader that an operator wants it to step down", async () => {
    const backend = testBackend();
    expect(backend.requestResign(scope)).toBe(false);
    await using elector = createElector({ scope, backend });
    const term = await elector.acquire();
    expect(backend.requestResign(scope)).toBe(true);
    await backend.advance(backend.timing.heartbeatMs * 2);
    expect(term.signal.aborted).toBe(true);
    expect(term.check()).toBe(term.epoch);
    await term.resign();
    expect(await term.ended).toBe("asked");
  });
});

describe("kill", () => {
  it("frees the scope at once, and the dead never hear of anything", async () => {
    const backend = testBackend();
    const a = createElector({ scope, backend: backend.instance("a") });
    await using b = createElector({ scope, backend: backend.instance("b") });
    const first = await a.acquire();
    const second = b.acquire();
    await backend.kill("a");
    expect((await second).epoch).toBe(first.epoch + 1);
    await backend.advance(60_000);
    expect(first.signal.aborted).toBe(false);
    expect(a.gate.isLeader).toBe(false);
  });

  it("gives the next instance of that name a life of its own", async () => {
    const backend = testBackend();
    const dead = createElector({ scope, backend: backend.instance("a") });
    await dead.acquire();
    await backend.kill("a");
    await using reborn = createElector({ scope, backend: backend.instance("a") });
    expect((await reborn.acquire()).epoch).toBe(2);
  });

  it("frees nothing before the server timeout while the machine is cut off", async () => {
    const backend = testBackend();
    await createElector({ scope, backend: backend.instance("a") }).acquire();
    await using b = createElector({ scope, backend: backend.instance("b") });
    const second = b.acquire();
    await backend.cut("a");
    await backend.kill("a");
    await backend.advance(backend.timing.serverTimeoutMs - 1);
    expect(b.gate.isLeader).toBe(false);
    await backend.advance(1);
    expect((await second).epoch).toBe(2);
  });

  it("lets nothing arrive that was under way", async () => {
    const backend = testBackend({ latencyMs: 50 });
    void createElector({ scope, backend: backend.instance("a") }).acquire();
    await backend.advance(25);
    await backend.kill("a");
    const b = createElector({ scope, backend: backend.instance("b") });
    void b.acquire();
    await backend.advance(100);
    expect(b.gate.requireLeader()).toBe(1);
  });
});

describe("freeze and thaw", () => {
  it("trap 34: the gate of a frozen leader is closed when it thaws, before any timer of it has run", async () => {
    const backend = testBackend();
    const a = createElector({ scope, backend: backend.instance("a") });
    await using b = createElector({ scope, backend: backend.instance("b") });
    const first = await a.acquire();
    void b.acquire();
    await backend.freeze("a");
    await backend.advance(backend.timing.serverTimeoutMs + 10);
    expect(b.gate.isLeader).toBe(true);
    const thawed = backend.thaw("a");
    expect(a.gate.isLeader).toBe(false);
    expect(first.signal.aborted).toBe(false);
    await thawed;
    expect(first.signal.aborted).toBe(true);
  });

  it("delivers late timers and answers in the order in which they came due", async () => {
    const backend = testBackend();
    const { clock } = backend.instance("a");
    const fired: string[] = [];
    const at = (ms: number, text: string): unknown =>
      clock?.setTimer((clock?.monotonicMs() ?? 0) + ms, () => fired.push(`${text} at ${backend.nowMs}`));
    at(30, "late");
    at(10, "early");
    await backend.freeze("a");
    await backend.advance(100);
    expect(fired).toEqual([]);
    await backend.thaw("a");
    expect(fired).toEqual(["early at 100", "late at 100"]);
  });

  it("does not fire a held timer that what came before it has cancelled", async () => {
    const backend = testBackend();
    const { clock } = backend.instance("a");
    const nowMs = clock?.monotonicMs() ?? 0;
    let fired = false;
    clock?.setTimer(nowMs + 1, () => second?.cancel());
    const second = clock?.setTimer(nowMs + 2, () => (fired = true));
    await backend.freeze("a");
    await backend.advance(10);
    await backend.thaw("a");
    expect(fired).toBe(false);
  });
});

describe("cut and heal", () => {
  it("makes a read fail, with an error that says why", async () => {
    const backend = testBackend();
    await using elector = createElector({ scope, backend: backend.instance("a") });
    await backend.cut("a");
    const read = expect(elector.leader()).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    await backend.advance(1_000);
    await read;
    await backend.heal("a");
    expect(await elector.leader()).toBeNull();
  });

  it("keeps the term when the line is back before the server timeout", async () => {
    const backend = testBackend();
    await using elector = createElector({ scope, backend: backend.instance("a") });
    const { epoch, signal } = await elector.acquire();
    await backend.cut("a");
    await backend.advance(backend.timing.serverTimeoutMs - backend.timing.marginMs);
    expect(elector.gate.isLeader).toBe(false);
    await backend.heal("a");
    await backend.advance(backend.timing.heartbeatMs);
    expect(elector.gate.requireLeader()).toBe(epoch);
    expect(signal.aborted).toBe(false);
  });

  it("loses a grant whose answer vanished, and waits again once it is healed", async () => {
    const backend = testBackend({ latencyMs: 50 });
    const a = createElector({ scope, backend: backend.instance("a") });
    void a.acquire();
    await backend.advance(75);
    await backend.cut("a");
    await backend.advance(backend.timing.serverTimeoutMs * 2);
    expect(a.gate.isLeader).toBe(false);
    await backend.heal("a");
    await backend.advance(2_000);
    expect(a.gate.requireLeader()).toBe(2);
  });
});

describe("the resource", () => {
  it("refuses every epoch but the one in force, as a fence does", async () => {
    const backend = testBackend();
    const resource = backend.resource<string>(scope);
    await using a = createElector({ scope, backend: backend.instance("a") });
    await using b = createElector({ scope, backend: backend.instance("b") });
    await expect(resource.write(0, "nobody")).rejects.toThrow(StaleEpochError);
    const first = await a.acquire();
    await resource.write(first.epoch, "a");
    await first.resign();
    await expect(resource.write(first.epoch, "a, late")).rejects.toThrow(StaleEpochError);
    const second = await b.acquire();
    await resource.write(second.epoch, "b");
    await expect(resource.write(first.epoch, "a, later")).rejects.toThrow(StaleEpochError);
    expect(resource.writes).toEqual([
      { epoch: 1, value: "a" },
      { epoch: 2, value: "b" },
    ]);
    expect(resource.refused).toBe(3);
  });

  it("accepts a leader that is gone until another leads, as Postgres does", async () => {
    const backend = testBackend();
    const { epoch } = await createElector({ scope, backend: backend.instance("a") }).acquire();
    await backend.kill("a");
    await backend.resource(scope).write(epoch, "in flight");
  });
});

describe("mistakes of a test", () => {
  it("are told with the names that there are", async () => {
    const backend = testBackend();
    backend.instance("a");
    await expect(backend.kill("b")).rejects.toThrow('no instance "b" (it has: a)');
    expect(() => testBackend({ latencyMs: -1 })).toThrow("latencyMs is -1");
  });
});
