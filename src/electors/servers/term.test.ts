import { describe, expect, it } from "vitest";
import { NotLeaderError, StaleEpochError, VersionConflictError } from "../../core/kit/errors.ts";
import type { Hold } from "../../ports/backends/backend.ts";
import { settled } from "../../loops/test-clock.ts";
import { ok, refusal, type Said, SILENCE, sit, TestServers, unreachable } from "./test-wire.ts";

const never = new AbortController().signal;
const NOW = { name: "cursor", value: { at: 7 }, version: 9, updated_at_ms: 5, scope: "s", epoch: 41 };

/** A term of epoch 42 at a servers backend. */
async function term(...answers: Said[]) {
  const servers = new TestServers();
  servers.says["value"] = () => answers.shift() ?? ok({ version: 10 });
  const { seat } = sit(servers);
  await seat.acquire(never);
  const losses: string[] = [];
  const gate = { isOpen: true };
  const hold: Hold = {
    scope: "s",
    epoch: 42,
    check: () => {
      if (!gate.isOpen) throw new NotLeaderError("suspended", "the gate is closed");
      return 42;
    },
    lost: (reason) => losses.push(reason),
  };
  const writes = () => servers.questions.filter(({ path }) => path.startsWith("/v1/values/"));
  return { servers, seat, gate, losses, writes, held: seat.extras(hold) };
}

const failed = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "it worked",
    (error: unknown) => error,
  );

describe("a write of a term", () => {
  it("carries its scope and its epoch, and resolves with the version", async () => {
    const { held, writes } = await term();
    expect(await held.put("a/b c", { at: 7 }, { ifVersion: 9 })).toEqual({ version: 10 });
    expect(writes()[0]).toMatchObject({
      method: "PUT",
      path: "/v1/values/a%2Fb%20c",
      body: { value: { at: 7 }, if_version: 9, scope: "s", epoch: 42 },
    });
  });

  it("that deletes does too; what is not there is no error", async () => {
    const { held, writes } = await term(ok({ deleted: true, version: 11 }), ok({ deleted: false, version: null }));
    expect(await held.delete("cursor", { ifVersion: 10 })).toEqual({ deleted: true, version: 11 });
    expect(await held.delete("cursor")).toEqual({ deleted: false, version: null });
    expect(writes().map(({ method, path }) => `${method} ${path}`)).toEqual([
      "DELETE /v1/values/cursor?if_version=10&scope=s&epoch=42",
      "DELETE /v1/values/cursor?scope=s&epoch=42",
    ]);
  });

  it("is not sent where the gate is closed", async () => {
    const { held, gate, writes } = await term();
    gate.isOpen = false;
    await expect(held.put("cursor", 1)).rejects.toBeInstanceOf(NotLeaderError);
    await expect(held.delete("cursor")).rejects.toBeInstanceOf(NotLeaderError);
    expect(writes()).toEqual([]);
  });

  it("with an epoch that is over is StaleEpochError, and ends the term", async () => {
    const { held, losses } = await term(refusal(409, "STALE_EPOCH"));
    const error = await failed(held.put("cursor", 1));
    expect(error).toBeInstanceOf(StaleEpochError);
    expect(error).toMatchObject({ scope: "s", epoch: 42 });
    expect(losses).toEqual(["lease-gone"]);
  });

  it("of another version is VersionConflictError with what there is", async () => {
    const { held, losses } = await term(
      refusal(409, "VERSION_CONFLICT", { name: "cursor", version: 9 }),
      refusal(409, "VERSION_CONFLICT", { name: "cursor", version: null }),
    );
    const error = await failed(held.put("cursor", 1, { ifVersion: 8 }));
    expect(error).toBeInstanceOf(VersionConflictError);
    expect(error).toMatchObject({ value: "cursor", version: 9 });
    expect(await failed(held.delete("cursor", { ifVersion: 8 }))).toMatchObject({ version: null });
    expect(losses).toEqual([]);
  });

  it.each([
    ["there is no room", 507, "QUOTA_EXCEEDED", "QUOTA_EXCEEDED"],
    ["the log is in a database", 501, "NOT_SUPPORTED", "NOT_SUPPORTED"],
    ["the servers are of an earlier release", 404, "NOT_FOUND", "NOT_SUPPORTED"],
    ["the key may not", 403, "PERMISSION_DENIED", "PERMISSION_DENIED"],
  ])("is refused for good, after one try, where %s", async (_, status, said, code) => {
    const { held, writes } = await term(refusal(status, said));
    expect(await failed(held.put("cursor", 1))).toMatchObject({ code });
    expect(writes()).toHaveLength(1);
  });
});

describe("a write of a value that a transaction locks", () => {
  const locked = refusal(409, "txn_locked");

  it("is sent again to the same leader until that is decided: it was not done", async () => {
    const { held, servers, writes, losses } = await term(locked, locked, locked, ok({ version: 11 }));
    const asked = servers.asked.length;
    const written = held.put("cursor", 1);
    await servers.clock.advance(2_000);
    expect(await written).toEqual({ version: 11 });
    expect(writes()).toHaveLength(4);
    expect(servers.asked).toHaveLength(asked + 4);
    expect(losses).toEqual([]);
  });

  it("is refused after a while: definitely not done, and the term goes on", async () => {
    const { held, servers, writes, losses } = await term(...Array.from({ length: 1_000 }, () => locked));
    const error = failed(held.put("cursor", 1));
    await servers.clock.advance(60_000);
    expect(await error).toMatchObject({ code: "txn_locked", retryable: true });
    expect(writes().length).toBeLessThan(200);
    expect(losses).toEqual([]);
  });
});

describe("a write that may have been done", () => {
  it.each<[string, Said]>([
    ["was not answered", unreachable(false)],
    ["was answered with an error of the server", refusal(500, "INTERNAL")],
    ["was answered with OUTCOME_UNKNOWN", refusal(503, "OUTCOME_UNKNOWN")],
    ["was answered with nonsense", ok({ version: "10" })],
    ["was refused in a way that names no version", refusal(409, "VERSION_CONFLICT")],
  ])("because it %s is OUTCOME_UNKNOWN, and is not sent again", async (_, said) => {
    const { held, servers, writes, losses } = await term(said);
    const error = failed(held.put("cursor", 1));
    await servers.clock.advance(20_000);
    expect(await error).toMatchObject({ code: "OUTCOME_UNKNOWN" });
    expect(writes()).toHaveLength(1);
    expect(losses).toEqual([]);
  });

  it("because a server is silent is waited for longer than a server takes to refuse it", async () => {
    const { held, servers, writes } = await term(SILENCE);
    const error = failed(held.put("cursor", 1));
    await servers.clock.advance(2_900);
    expect(servers.clock.pending).toBeGreaterThan(0);
    expect(writes()[0]!.timeoutMs).toBeGreaterThanOrEqual(3_000);
    await servers.clock.advance(5_000);
    expect(await error).toMatchObject({ code: "OUTCOME_UNKNOWN" });
  });
});

describe("a write that certainly was not done", () => {
  it.each<[string, Said]>([
    ["never left", unreachable(true)],
    ["met a node that does not lead", refusal(409, "NOT_LEADER", { leader_id: null, leader_url: null })],
    ["met a cluster without a leader", refusal(503, "ERR_NO_LEADER")],
    ["was refused for the moment", refusal(503, "OVERLOADED")],
  ])("because it %s is sent again", async (_, said) => {
    const { held, servers, writes } = await term(said);
    const written = held.put("cursor", 1);
    await servers.clock.advance(1_000);
    expect(await written).toEqual({ version: 10 });
    expect(writes()).toHaveLength(2);
  });

  it("and can't be, is an error that a retry may repair, and not OUTCOME_UNKNOWN", async () => {
    const { held, servers, writes } = await term();
    servers.says["value"] = () => refusal(503, "ERR_NO_LEADER");
    const error = failed(held.put("cursor", 1));
    await servers.clock.advance(10_000);
    expect(await error).toMatchObject({ code: "BACKEND_UNAVAILABLE", retryable: true });
    expect(writes().length).toBeLessThan(30);
  });
});

describe("a write that is under way when its term ends", () => {
  it.each<[string, Said, unknown]>([
    ["was committed", ok({ version: 10 }), { version: 10 }],
    ["was refused", refusal(409, "STALE_EPOCH"), expect.objectContaining({ code: "STALE_EPOCH" })],
    ["is not known", unreachable(false), expect.objectContaining({ code: "OUTCOME_UNKNOWN" })],
  ])("says that it %s, also while the elector is closed", async (_, said, outcome) => {
    const { held, servers, seat } = await term();
    const answer = Promise.withResolvers<Said>();
    servers.says["value"] = () => answer.promise;
    const written = held.put("cursor", 1).catch((error: unknown) => error);
    await settled();
    seat.abandon();
    let isClosed = false;
    const closed = seat.close().then(() => (isClosed = true));
    await servers.clock.advance(100);
    expect(isClosed).toBe(false);
    answer.resolve(said);
    await servers.clock.advance(5_000);
    expect(await written).toEqual(outcome);
    await closed;
  });
});

describe("what can't be a value", () => {
  it.each<[string, string, unknown, object]>([
    ["an empty name", "", 1, { code: "BAD_REQUEST", field: "name" }],
    ["a name that is another path", "..", 1, { code: "BAD_REQUEST", field: "name" }],
    ["half of a surrogate pair", "\ud800", 1, { code: "BAD_REQUEST", field: "name" }],
    ["a name of 257 bytes", "x".repeat(257), 1, { code: "BAD_REQUEST", field: "name" }],
    ["undefined", "cursor", undefined, { code: "BAD_REQUEST", field: "value" }],
    ["a number that JSON can't say", "cursor", { at: Number.NaN }, { code: "BAD_REQUEST", field: "value" }],
    ["more than 64 KiB", "cursor", "x".repeat(65_536), { code: "PAYLOAD_TOO_LARGE" }],
  ])("is refused here: %s", async (_, name, value, error) => {
    const { held, writes } = await term();
    await expect(held.put(name, value as never)).rejects.toMatchObject(error);
    expect(writes()).toEqual([]);
  });

  it("nor can a condition that is none, or is misspelt", async () => {
    const { held, writes } = await term();
    await expect(held.put("cursor", 1, { ifVersion: -1 })).rejects.toMatchObject({ code: "BAD_REQUEST" });
    await expect(held.put("cursor", 1, { ifVersoin: 1 } as never)).rejects.toMatchObject({ code: "CONFIG_INVALID" });
    await expect(held.delete("cursor", { if_version: 1 } as never)).rejects.toMatchObject({ code: "CONFIG_INVALID" });
    expect(writes()).toEqual([]);
  });
});

describe("a read of a term", () => {
  it("is linearizable, and asks the list: a server without values is not one without this value", async () => {
    const { held, servers, gate } = await term();
    gate.isOpen = false;
    servers.says["values"] = () => ok({ values: [NOW], next: null, as_of: 9 });
    expect(await held.get("cursor")).toEqual({
      name: "cursor",
      value: { at: 7 },
      version: 9,
      updatedAtMs: 5,
      scope: "s",
      epoch: 41,
    });
    expect(servers.questions.at(-1)!.path).toBe("/v1/values?consistency=linearizable&prefix=cursor&limit=1");
    servers.says["values"] = () => ok({ values: [{ ...NOW, name: "cursors" }], next: "cursors", as_of: 9 });
    expect(await held.get("cursor")).toBeNull();
    servers.says["values"] = () => refusal(404, "NOT_FOUND");
    await expect(held.get("cursor")).rejects.toMatchObject({ code: "NOT_SUPPORTED" });
  });

  it("is sent again, also where it was not answered", async () => {
    const { held, servers } = await term();
    const answers = [unreachable(false), ok({ values: [], next: null, as_of: 9 })];
    servers.says["values"] = () => answers.shift()!;
    const got = held.get("cursor");
    await servers.clock.advance(1_000);
    expect(await got).toBeNull();
  });
});
