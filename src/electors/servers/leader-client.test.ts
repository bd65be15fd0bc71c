import { describe, expect, it } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import { settled } from "../../loops/test-clock.ts";
import type { Question } from "./leader-client.ts";
import { leaderClient, ok, refusal, SILENCE, TestServers, unreachable } from "./test-wire.ts";

const never = new AbortController().signal;
const read = (fields: object): object => fields;
const RENEW: Question<object> = { method: "POST", path: "/v1/scopes/s/renew", body: {}, signal: never, read };
const ONCE: Question<object> = { ...RENEW, path: "/v1/admin/scopes/s/resign", once: true };

function named(leader: string | null): object {
  const fields = { leader_id: leader, leader_url: leader === null ? null : `https://${leader}`, leader_epoch: 5 };
  return { ...fields, node_id: "x", role: "STANDBY" };
}

describe("the leader of the cluster", () => {
  it("is found by asking every node, and then known", async () => {
    const servers = new TestServers();
    const client = leaderClient(servers);
    await client.ask(RENEW);
    await client.ask(RENEW);
    expect(servers.asked).toEqual([
      "n1 GET cluster",
      "n2 GET cluster",
      "n3 GET cluster",
      "n1 POST renew",
      "n1 POST renew",
    ]);
  });

  it("is whom the highest term names, not whom the most name", async () => {
    const servers = new TestServers();
    const word = (leader: string, term: number) =>
      ok({
        cluster_id: "c1",
        node_id: leader,
        term,
        leader: { node_id: leader, address: null, url: null },
        members: [],
      });
    servers.says["n3 GET cluster"] = () => word("n3", 6);
    await leaderClient(servers).ask(RENEW);
    expect(servers.posts).toEqual(["n3 POST renew"]);
  });

  it("is followed along a chain of NOT_LEADER without a pause", async () => {
    const servers = new TestServers();
    servers.says["n1 POST renew"] = () => refusal(409, "NOT_LEADER", named("n2"));
    servers.says["n2 POST renew"] = () => refusal(409, "NOT_LEADER", named("n3"));
    await leaderClient(servers).ask(RENEW);
    expect(servers.posts).toEqual(["n1 POST renew", "n2 POST renew", "n3 POST renew"]);
    expect(servers.clock.pending).toBe(0);
  });

  it("is not chased in circles: two that name each other are asked a few times, then there is a pause", async () => {
    const servers = new TestServers();
    servers.says["n1 POST renew"] = () => refusal(409, "NOT_LEADER", named("n2"));
    servers.says["n2 POST renew"] = () => refusal(409, "NOT_LEADER", named("n1"));
    const asked = leaderClient(servers)
      .ask(RENEW)
      .catch((error: unknown) => error);
    await settled();
    expect(servers.posts).toHaveLength(4);
    await servers.clock.advance(10_000);
    expect(await asked).toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    expect(servers.posts.length).toBeLessThan(80);
  });

  it("trap 64: that is no known member is not followed, and nothing is sent to it", async () => {
    const servers = new TestServers();
    servers.says["n1 POST renew"] = () => refusal(409, "NOT_LEADER", named("evil"));
    servers.says["n1 GET leader"] = () =>
      ok({ leader_id: "evil", leader_address: null, leader_url: "https://evil", term: 9, node_id: "n1" });
    const asked = leaderClient(servers)
      .ask(RENEW)
      .catch((error: unknown) => error);
    await servers.clock.advance(10_000);
    expect(await asked).toMatchObject({
      code: "BACKEND_UNAVAILABLE",
      message: expect.stringContaining("Give its URL too"),
    });
    expect(servers.asked.filter((one) => one.startsWith("evil"))).toEqual([]);
  });

  it("that dies is given up, and the next one asked as soon as there is one", async () => {
    const servers = new TestServers();
    const client = leaderClient(servers);
    await client.ask(RENEW);
    servers.says["n1 *"] = () => unreachable(true);
    const asked = client.ask(RENEW);
    await servers.clock.advance(100);
    servers.leaderId = "n2";
    servers.term = 6;
    await servers.clock.advance(250);
    const { sentAt } = await asked;
    expect(servers.posts.at(-1)).toBe("n2 POST renew");
    // Trap 44: of the try that was answered.
    expect(sentAt.monotonicMs).toBeGreaterThan(1_100);
  });

  it("that falls silent costs one request's time, although the others still name it for a while", async () => {
    const servers = new TestServers();
    const client = leaderClient(servers);
    await client.ask(RENEW);
    servers.says["n1 *"] = () => SILENCE;
    const asked = client.ask(RENEW);
    await servers.clock.advance(900);
    servers.leaderId = "n2";
    servers.term = 6;
    await servers.clock.advance(200);
    await asked;
    expect(servers.clock.now.monotonicMs).toBe(2_100);
    expect(servers.posts).toEqual(["n1 POST renew", "n1 POST renew", "n2 POST renew"]);
  });

  it("that is known and slow is taken from the word of one that is near, and stays known", async () => {
    const servers = new TestServers();
    const client = leaderClient(servers);
    await client.ask(RENEW);
    servers.says["n1 POST renew"] = () => refusal(503, "OVERLOADED");
    servers.says["n1 GET leader"] = () => SILENCE;
    const asked = client.ask(RENEW);
    await settled();
    delete servers.says["n1 POST renew"];
    // A pause of at most 20 ms, and the moment for which a first word waits for a better one.
    await servers.clock.advance(75);
    await asked;
    const doubts = [refusal(503, "OVERLOADED")];
    servers.says["n1 POST renew"] = () => doubts.shift() ?? ok({});
    const again = client.ask(RENEW);
    await servers.clock.advance(75);
    await again;
    // Introduced once: that the search did not wait for its word was no failure of it.
    expect(servers.asked.filter((one) => one === "n1 GET cluster")).toHaveLength(1);
  });

  it("that is slow to say so itself at the first time is waited for", async () => {
    const servers = new TestServers();
    const slow = Promise.withResolvers<void>();
    servers.says["n1 GET cluster"] = async () => {
      await slow.promise;
      return ok({ cluster_id: "c1", node_id: "n1", term: 5, leader: { node_id: "n1", url: null }, members: [] });
    };
    const asked = leaderClient(servers).ask(RENEW);
    await servers.clock.advance(300);
    expect(servers.posts).toEqual([]);
    slow.resolve();
    await asked;
    expect(servers.posts).toEqual(["n1 POST renew"]);
  });
});

describe("a question", () => {
  it("goes to another node where one answers garbage, and fails for good where all do", async () => {
    const servers = new TestServers();
    const client = leaderClient(servers);
    await client.ask(RENEW);
    servers.says["n1 *"] = () => ok({ hello: "world" });
    servers.says["n1 POST renew"] = () => refusal(500, "INTERNAL");
    servers.leaderId = "n2";
    const asked = client.ask(RENEW);
    await servers.clock.advance(600);
    await asked;
    expect(servers.posts.at(-1)).toBe("n2 POST renew");
    for (const node of ["n1", "n2", "n3"]) servers.says[`${node} *`] = () => ok({ hello: "world" });
    await expect(leaderClient(servers).ask(RENEW)).rejects.toMatchObject({ code: "BACKEND_UNSUPPORTED" });
  });

  it("whose answer may be long, and is longer than that, is refused by the first node and asked of no other", async () => {
    const servers = new TestServers();
    const client = leaderClient(servers);
    await client.ask(RENEW);
    const tooLong = Object.assign(new TenureError("BACKEND_UNSUPPORTED", "more than 9 bytes"), { tooLong: true });
    servers.says["scope"] = () => tooLong;
    const read = { ...RENEW, method: "GET", path: "/v1/scopes", body: null, bytesMax: 9 } as const;
    await expect(client.ask(read)).rejects.toBe(tooLong);
    expect(servers.asked.filter((one) => one.endsWith("scope"))).toEqual(["n1 GET scope"]);
  });

  it("with a wrong key is refused at once, also while a node is away", async () => {
    const servers = new TestServers();
    for (const node of ["n1", "n2"]) servers.says[`${node} *`] = () => refusal(401, "UNAUTHENTICATED");
    servers.says["n3 *"] = () => unreachable(true);
    const error = await leaderClient(servers)
      .ask(RENEW)
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "PERMISSION_DENIED", message: expect.stringContaining("TENURE_API_KEY") });
  });

  it("with a key that a wiped node does not know goes to the leader, and waits for one while there is none", async () => {
    const servers = new TestServers();
    servers.says["n1 *"] = () => refusal(401, "UNAUTHENTICATED");
    servers.leaderId = "n2";
    await leaderClient(servers).ask(RENEW);
    expect(servers.posts).toEqual(["n2 POST renew"]);
    const waiting = new TestServers();
    waiting.says["n1 *"] = () => refusal(401, "UNAUTHENTICATED");
    for (const node of ["n2", "n3"]) waiting.says[`${node} *`] = () => refusal(503, "CALLER_UNCONFIRMED");
    const asked = leaderClient(waiting).ask(RENEW);
    await waiting.clock.advance(10);
    for (const node of ["n2", "n3"]) delete waiting.says[`${node} *`];
    waiting.leaderId = "n2";
    await waiting.clock.advance(400);
    await expect(asked).resolves.toMatchObject({ value: expect.anything() });
  });

  it("to a leader of the past that does not know the key goes to the leader of now; the leader's own word ends it", async () => {
    const servers = new TestServers();
    const client = leaderClient(servers);
    await client.ask(RENEW);
    servers.says["n1 POST renew"] = () => refusal(401, "UNAUTHENTICATED", { role: "STANDBY" });
    servers.leaderId = "n2";
    const moved = client.ask(RENEW);
    await servers.clock.advance(400);
    await expect(moved).resolves.toMatchObject({ value: expect.anything() });
    servers.says["renew"] = () => refusal(401, "UNAUTHENTICATED", { role: "LEADER" });
    await expect(client.ask(RENEW)).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
  });

  it("to a stranger among the URLs is not sent; to nobody but strangers it is refused for good", async () => {
    const servers = new TestServers();
    const client = leaderClient(servers);
    await client.ask(RENEW);
    // Another cluster is founded at n1, and n2 leads ours.
    servers.leaderId = "n2";
    const stranger = { cluster_id: "c2", node_id: "n1", term: 99, leader: { node_id: "n1", url: null }, members: [] };
    servers.says["n1 *"] = () => unreachable(true);
    const moved = client.ask(RENEW);
    servers.says["n1 *"] = () => ok(stranger);
    await servers.clock.advance(100);
    await moved;
    expect(servers.posts.at(-1)).toBe("n2 POST renew");
    for (const node of ["n1", "n2", "n3"]) servers.says[`${node} *`] = () => ({ ...ok(stranger), clusterId: "c2" });
    const refused = client.ask(RENEW).catch((error: unknown) => error);
    await servers.clock.advance(100);
    expect(await refused).toMatchObject({ code: "CLUSTER_MISMATCH" });
  });

  it("trap 65: that must not be done twice is sent again only where it was certainly not done", async () => {
    const servers = new TestServers();
    const answers = [refusal(409, "NOT_LEADER", named("n2")), refusal(503, "ERR_NO_LEADER"), unreachable(true)];
    servers.says["admin-resign"] = () => answers.shift() ?? ok({ epoch: 7 });
    const asked = leaderClient(servers).ask(ONCE);
    await servers.clock.advance(1_000);
    expect((await asked).value).toEqual({ epoch: 7 });
    expect(servers.posts).toHaveLength(4);
  });

  it.each([
    ["no answer", unreachable(false)],
    ["a crash", refusal(500, "INTERNAL")],
    ["the server's own doubt", refusal(503, "OUTCOME_UNKNOWN")],
  ])(
    "trap 66: that must not be done twice and got %s is reported as unknown, and not sent again",
    async (_what, said) => {
      const servers = new TestServers();
      servers.says["admin-resign"] = () => said;
      await expect(leaderClient(servers).ask(ONCE)).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
      expect(servers.posts).toHaveLength(1);
    },
  );

  it("that is given up rejects at once and is asked no more", async () => {
    const servers = new TestServers();
    const stop = new AbortController();
    servers.says["renew"] = () => SILENCE;
    const asked = leaderClient(servers)
      .ask({ ...RENEW, signal: stop.signal })
      .catch((error: unknown) => error);
    await settled();
    stop.abort();
    expect(await asked).toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    await servers.clock.advance(5_000);
    expect(servers.posts).toHaveLength(1);
  });
});
