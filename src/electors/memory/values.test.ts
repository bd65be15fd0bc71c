// Values of the test backend: as on real servers, a write counts only while its epoch is held.

import { describe, expect, it } from "vitest";
import { createElector, TenureError } from "../../entry/index.ts";
import { testBackend } from "../../entry/testing.ts";
import type { Json } from "../../core/kit/json.ts";
import { JSON_DEPTH_MAX } from "../../core/kit/limits.ts";
import type { ValueItem } from "../../ports/stored-values.ts";

function stage() {
  const backend = testBackend();
  const on = (name: string) => createElector({ scope: "s", backend: backend.instance(name) });
  return { backend, on, values: backend.values() };
}

describe("values of a test backend", () => {
  it("are a new leader's from where the last one stopped", async () => {
    const { backend, on, values } = stage();
    await backend.advance(7);
    const first = await on("a").acquire();
    expect(await first.get("cursor")).toBeNull();
    expect(await first.put("cursor", { at: 1 })).toEqual({ version: 1 });
    await first.resign();
    await expect(first.put("cursor", { at: 2 })).rejects.toMatchObject({ code: "NOT_LEADER" });
    const next = await on("b").acquire();
    expect(await next.get("cursor")).toMatchObject({ value: { at: 1 }, version: 1, scope: "s", epoch: first.epoch });
    expect(next.epoch).toBeGreaterThan(first.epoch);
    expect((await values.get("cursor"))?.updatedAtMs).toBe(Date.UTC(2026, 0) + 7);
  });

  it("refuse a leader that was cut off and does not know yet that another one leads", async () => {
    const { backend, on, values } = stage();
    const first = await on("a").acquire();
    await first.put("cursor", 1);
    const next = on("b").acquire();
    await backend.freeze("a");
    await backend.advance(6_000);
    await (await next).put("cursor", 2);
    // The code under test still runs: its gate has closed before anything is sent.
    await expect(first.put("cursor", 99)).rejects.toMatchObject({ code: "NOT_LEADER" });
    await backend.thaw("a");
    expect(await values.get("cursor")).toMatchObject({ value: 2 });
  });

  it("refuse with StaleEpochError, while its gate is still open, who is followed already", async () => {
    const { backend, on, values } = stage();
    const term = await on("a").acquire();
    await backend.kill("a");
    await expect(term.put("cursor", 1), "nobody holds the scope").rejects.toMatchObject({ code: "STALE_EPOCH" });
    const next = await on("b").acquire();
    await next.put("cursor", 2);
    await expect(term.delete("cursor")).rejects.toBeInstanceOf(TenureError);
    expect(await values.get("cursor")).toMatchObject({ value: 2, epoch: next.epoch });
  });

  it("are as deep as on real servers, and no deeper", async () => {
    const { on, values } = stage();
    const term = await on("a").acquire();
    const nested = (levels: number): Json => (levels === 0 ? 1 : [nested(levels - 1)]);
    await term.put("deep", nested(JSON_DEPTH_MAX));
    const tooDeep = nested(JSON_DEPTH_MAX + 1);
    const refused = { code: "BAD_REQUEST", message: expect.stringContaining(`${JSON_DEPTH_MAX} levels`) };
    await expect(term.put("deeper", tooDeep)).rejects.toMatchObject(refused);
    await expect(values.put("deeper", tooDeep)).rejects.toMatchObject(refused);
    expect(await values.get("deeper")).toBeNull();
  });

  it("are written on a version, deleted and refused as on real servers", async () => {
    const { on } = stage();
    const term = await on("a").acquire();
    const { version } = await term.put("cursor", 1, { ifVersion: 0 });
    await expect(term.put("cursor", 2, { ifVersion: 0 })).rejects.toMatchObject({ code: "VERSION_CONFLICT", version });
    expect(await term.delete("cursor", { ifVersion: version })).toEqual({ deleted: true, version: 2 });
    expect(await term.delete("cursor")).toEqual({ deleted: false, version: null });
    await expect(term.delete("cursor", { ifVersion: 1 })).rejects.toMatchObject({ version: null });
    await expect(term.put("cursor", "x".repeat(65_536))).rejects.toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
    await expect(term.put("..", 1)).rejects.toMatchObject({ code: "BAD_REQUEST" });
    await expect(term.put("cursor", Number.NaN)).rejects.toMatchObject({ code: "BAD_REQUEST" });
  });

  it("are copies: what is changed afterwards is not written", async () => {
    const { on } = stage();
    const term = await on("a").acquire();
    const plan = { steps: [1] };
    await term.put("plan", plan);
    plan.steps.push(2);
    expect((await term.get("plan"))?.value).toEqual({ steps: [1] });
  });

  it("can be put by the test, listed by name and watched", async () => {
    const { on, values } = stage();
    await values.put("a/2", 2);
    await values.put("b", 0);
    const stop = new AbortController();
    const items: ValueItem[] = [];
    const reader = (async () => {
      for await (const item of values.watch({ prefix: "a/", signal: stop.signal })) {
        if (items.push(item) === 5) stop.abort();
      }
    })();
    const later: ValueItem[] = [];
    const closed = (async () => {
      for await (const item of values.watch({ after: 3 })) later.push(item);
    })();
    const term = await on("a").acquire();
    await term.put("a/1", 1);
    await term.put("b", 1);
    await term.delete("a/2");
    const listed: string[] = [];
    for await (const { name } of values.list({ prefix: "a/" })) listed.push(name);
    expect(listed).toEqual(["a/1"]);
    await term.put("a/1", 3);
    await reader;
    expect(items.map((item) => [item.kind, item.version])).toEqual([
      ["put", 1],
      ["current", 2],
      ["put", 3],
      ["deleted", 5],
      ["put", 6],
    ]);
    await values.close();
    await closed;
    expect(later.map(({ version }) => version)).toEqual([4, 5, 6]);
  });
});
