import { describe, expect, test } from "vitest";
import { healthy, sit } from "./test-wire.ts";

const never = new AbortController().signal;
const atTerm = (term: number): object => ({ revision: "50", raft_term: String(term) });

describe("a beat", () => {
  test("is a keepalive first, then a look at the key", async () => {
    const { seat, wire } = sit(healthy());
    const { epoch } = await seat.acquire(never);
    wire.asked.length = 0;
    await seat.beat(epoch);
    expect(wire.asked).toEqual(["/v3/lease/keepalive", "/v3/kv/txn"]);
  });

  test("counts from its last keepalive where etcd changed its leader in between: the first may be a deposed one's", async () => {
    const { seat, wire } = sit(healthy());
    const { epoch } = await seat.acquire(never);
    const calm = await seat.beat(epoch);
    const terms = [8, 9];
    wire.says["/v3/lease/keepalive"] = () => ({ result: { header: atTerm(terms.shift() ?? 9), TTL: "6" } });
    wire.says["/v3/kv/txn"] = () => ({ header: atTerm(9), succeeded: true, responses: [{ response_range: {} }] });
    const { sentAt } = await seat.beat(epoch);
    // Each keepalive reads the clock once before it.
    expect(sentAt.monotonicMs).toBe(calm.sentAt.monotonicMs + 2);
  });

  test("takes one more keepalive where etcd has a new leader: the first may have been renewed by the old one", async () => {
    const { seat, wire } = sit(healthy());
    const { epoch } = await seat.acquire(never);
    wire.says["/v3/lease/keepalive"] = () => ({ result: { header: atTerm(8), TTL: "6" } });
    wire.says["/v3/kv/txn"] = () => ({ header: atTerm(8), succeeded: true, responses: [{ response_range: {} }] });
    wire.asked.length = 0;
    await seat.beat(epoch);
    await seat.beat(epoch);
    expect(wire.asked.filter((path) => path === "/v3/lease/keepalive")).toHaveLength(3);
  });

  test("proves nothing where etcd's leader changes again and again", async () => {
    const { seat, wire, losses } = sit(healthy());
    const { epoch } = await seat.acquire(never);
    let term = 7;
    wire.says["/v3/lease/keepalive"] = () => ({ result: { header: atTerm(++term), TTL: "6" } });
    await expect(seat.beat(epoch)).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE", retryable: true });
    expect(losses).toEqual([]);
  });

  test("trap 42: tells of a lease that is gone, even where no watch did", async () => {
    const { seat, wire, losses } = sit(healthy());
    const { epoch } = await seat.acquire(never);
    wire.says["/v3/lease/keepalive"] = () => ({ result: { header: atTerm(7), ID: "1001" } });
    await expect(seat.beat(epoch)).rejects.toMatchObject({ code: "STALE_EPOCH" });
    expect(losses).toEqual([[epoch, "lease-gone"]]);
  });

  test.each([
    ["nobody's key", [], "lease-gone"],
    ["another's key", [{ key: "", create_revision: "60" }], "superseded"],
  ])("tells of %s, though the lease lives", async (_what, kvs, reason) => {
    const { seat, wire, losses } = sit(healthy());
    const { epoch } = await seat.acquire(never);
    wire.says["/v3/kv/txn"] = () => ({ header: atTerm(7), responses: [{ response_range: { kvs } }] });
    await expect(seat.beat(epoch)).rejects.toMatchObject({ code: "STALE_EPOCH" });
    expect(losses).toEqual([[epoch, reason]]);
  });

  test("trap 42: an etcd without a leader is no loss", async () => {
    const { seat, wire, losses } = sit(healthy());
    const { epoch } = await seat.acquire(never);
    const message = "etcdserver: no leader";
    wire.says["/v3/lease/keepalive"] = () => ({ kind: "refused", code: 14, message });
    await expect(seat.beat(epoch)).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE", retryable: true });
    expect(losses).toEqual([]);
  });
});

describe("acquiring", () => {
  test("trap 44: trust counts from before the lease was asked for", async () => {
    const order: string[] = [];
    const says = healthy();
    const { seat, wire } = sit({
      ...says,
      "/v3/lease/grant": async (body) => {
        order.push("grant");
        return (await says["/v3/lease/grant"]?.(body)) ?? {};
      },
    });
    const { sentAt } = await seat.acquire(never);
    expect(wire.asked.slice(0, 2)).toEqual(["/v3/lease/grant", "/v3/kv/txn"]);
    // The first reading of the clock in this seat's life: nothing was timed before, and the key's transaction later.
    expect(sentAt.monotonicMs).toBe(1);
    expect(order).toEqual(["grant"]);
  });

  test("refuses a lease that is shorter than what would be trusted, and gives it back", async () => {
    const { seat, wire } = sit({
      ...healthy(),
      "/v3/lease/grant": () => ({ header: atTerm(7), ID: "1001", TTL: "5" }),
    });
    await expect(seat.acquire(never)).rejects.toMatchObject({ message: expect.stringMatching(/5 s where 6 s/) });
    expect(wire.asked).toEqual(["/v3/lease/grant", "/v3/lease/revoke"]);
  });

  test("a win whose answer comes after it was abandoned is given back, before the next try", async () => {
    const says = healthy();
    const answer = Promise.withResolvers<object>();
    const { seat, wire } = sit({ ...says, "/v3/kv/txn": () => answer.promise });
    const acquiring = seat.acquire(never).catch((error: unknown) => error);
    await expect.poll(() => wire.asked.at(-1)).toBe("/v3/kv/txn");
    seat.abandon();
    answer.resolve({ header: atTerm(7), succeeded: true });
    expect(await acquiring).toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    expect(wire.asked.at(-1)).toBe("/v3/lease/revoke");
  });

  test("does not try while a lease of an unknown outcome can't be revoked", async () => {
    const down = { kind: "refused", code: 14, message: "etcdserver: no leader" };
    const { seat, wire } = sit({ ...healthy(), "/v3/kv/txn": () => down, "/v3/lease/revoke": () => down });
    await expect(seat.acquire(never)).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    wire.asked.length = 0;
    await expect(seat.acquire(never)).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    expect(wire.asked).toEqual(["/v3/lease/revoke"]);
    Object.assign(wire.says, healthy());
    expect((await seat.acquire(never)).epoch).toBe(42);
  });

  test("an epoch beyond 2^53-1 is refused: two of them could look the same", async () => {
    const header = { revision: "9007199254740993", raft_term: "7" };
    const { seat } = sit({ ...healthy(), "/v3/kv/txn": () => ({ header, succeeded: true }) });
    await expect(seat.acquire(never)).rejects.toMatchObject({ message: expect.stringMatching(/2\^53-1/) });
  });
});

test("closing gives back what is held, and may be called twice", async () => {
  const { seat, wire } = sit(healthy());
  await seat.acquire(never);
  await Promise.all([seat.close(), seat.close()]);
  expect(wire.asked.at(-1)).toBe("/v3/lease/revoke");
});
