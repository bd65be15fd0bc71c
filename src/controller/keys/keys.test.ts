import { describe, expect, it } from "vitest";
import { API_KEYS_MAX } from "../../core/kit/limits.ts";
import { KeysFold } from "./keys-fold.ts";
import { KeysService } from "./keys.ts";
import { CommittedAtOnce } from "./test-journal.ts";

const REQUEST = { caller: "ada", idempotencyKey: null, bodyHash: "" };
const hash = (number: number): string => number.toString(16).padStart(64, "0");

function stage() {
  const fold = new KeysFold();
  const journal = new CommittedAtOnce(fold);
  const service = new KeysService({ fold, journal });
  const create = (name: string, sha256: string) => service.create(REQUEST, { name, role: "viewer", sha256 });
  return { fold, service, events: journal.events, create };
}

describe("keys", () => {
  it("are changed only in the leader epoch that the request names, if it names one", async () => {
    const { service, events } = stage();
    const create = (leaderEpoch: number) =>
      service.create({ ...REQUEST, leaderEpoch }, { name: "a", role: "viewer", sha256: hash(1) });
    await expect(create(2)).rejects.toMatchObject({ code: "STALE_EPOCH" });
    await expect(create(4)).rejects.toMatchObject({ code: "NOT_LEADER" });
    expect(events).toHaveLength(0);
    await create(3);
    await expect(service.revoke({ ...REQUEST, leaderEpoch: 2 }, "a")).rejects.toMatchObject({ code: "STALE_EPOCH" });
    await service.revoke({ ...REQUEST, leaderEpoch: 3 }, "a");
    expect(events).toHaveLength(2);
  });

  it("are found by their hash, listed by name without it, and gone when revoked", async () => {
    const { service, create } = stage();
    await create("b", hash(1));
    const made = await create("a", hash(2));
    expect(made).toEqual({ name: "a", role: "viewer", createdAtMs: 1_000, createdBy: "ada" });
    expect(service.find(hash(2))).toEqual(made);
    expect(service.list().map(({ name }) => name)).toEqual(["a", "b"]);
    expect(JSON.stringify(service.list())).not.toContain(hash(2));
    await service.revoke(REQUEST, "a");
    expect(service.find(hash(2))).toBeNull();
    await expect(service.revoke(REQUEST, "a")).rejects.toMatchObject({ code: "NOT_FOUND" });
  });

  it("the very same once more is no error and writes nothing; another of its name or hash is refused", async () => {
    const { events, create } = stage();
    await create("a", hash(1));
    await create("a", hash(1));
    await expect(create("a", hash(2))).rejects.toMatchObject({ code: "KEY_EXISTS" });
    await expect(create("b", hash(1))).rejects.toMatchObject({ code: "KEY_EXISTS" });
    expect(events).toHaveLength(1);
  });

  it("of many that are asked for at once each is decided on the one before", async () => {
    const { events, create } = stage();
    const asked = await Promise.allSettled([create("a", hash(1)), create("a", hash(2)), create("a", hash(3))]);
    expect(asked.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected"]);
    expect(events).toHaveLength(1);
  });

  it(`are at most ${API_KEYS_MAX}: one more is refused, and taken when another is gone`, async () => {
    const { fold, service, create } = stage();
    for (let i = 0; i < API_KEYS_MAX; i++) await create(`k${i}`, hash(i + 1));
    await expect(create("more", hash(9_999))).rejects.toMatchObject({ code: "OVERLOADED" });
    expect(fold.size).toBe(API_KEYS_MAX);
    await service.revoke(REQUEST, "k0");
    await create("more", hash(9_999));
    expect(fold.size).toBe(API_KEYS_MAX);
  });

  it("outlive a snapshot, hashes and all", async () => {
    const { fold, create } = stage();
    await create("a", hash(1));
    const other = new KeysFold();
    other.restore(fold.snapshot());
    expect(other.byHash(hash(1))).toEqual(fold.byName("a"));
    other.restore("[]");
    expect(other.size).toBe(0);
  });
});
