import { describe, expect, it } from "vitest";
import { createClient } from "./client.ts";
import { failed, leaderAnswer, Network, type Node, notLeader } from "./test-network.ts";
import { virtualTime } from "../../test/virtual-time.ts";

virtualTime();

const N1 = "http://127.0.0.1:1";
const N2 = "http://127.0.0.1:2";
const N3 = "http://127.0.0.1:3";
const MOVED = [200, { success: true, message: "", old_leader_id: "n2", new_leader_id: "n1" }] as const;

function clientOf(network: Network, urls: readonly string[], timeoutMs = 1_000) {
  return createClient({ urls, key: "secret", fetch: network.fetch, timeoutMs });
}

/** `/leader` as given; everything else by the handler. */
function node(
  nodeId: string,
  leader: readonly [string, string | null, number] | null,
  others: Node = () => [404, {}],
): Node {
  return (path, sent) => {
    if (path !== "/leader") return others(path, sent);
    if (leader === null) return [503, { error: "ERR_NO_LEADER", code: 4002, message: "nobody leads" }];
    return leaderAnswer(nodeId, leader[0], leader[1], leader[2]);
  };
}

function network(nodes: Readonly<Record<string, Node>>): Network {
  const made = new Network();
  for (const [url, one] of Object.entries(nodes)) made.nodes.set(url, one);
  return made;
}

describe("finding the leader", () => {
  it("takes the highest term: a node that was cut off names a leader of the past", async () => {
    const net = network({
      [N1]: node("n1", ["n1", N1, 3]),
      [N2]: node("n2", ["n2", N2, 7]),
      [N3]: node("n3", ["n1", N1, 3]),
    });
    expect(await clientOf(net, [N1, N2, N3]).leader()).toMatchObject({ leaderId: "n2", term: 7, url: N2 });
  });

  it("goes to the URL under which the leader itself answered, whatever it calls itself", async () => {
    const net = network({ [N1]: node("n1", ["n2", "http://n2.internal:7100", 4]), [N2]: node("n2", ["n2", null, 4]) });
    expect((await clientOf(net, [N1, N2]).leader()).url).toBe(N2);
  });

  it("does not wait for a node that says nothing", async () => {
    const net = network({ [N1]: () => "never", [N2]: node("n2", ["n2", N2, 2]), [N3]: node("n3", ["n2", N2, 2]) });
    const startedMs = performance.now();
    await clientOf(net, [N1, N2, N3], 60_000).leader();
    expect(performance.now() - startedMs).toBeLessThan(1_000);
  });

  it("does not look for it again after a call that its caller gave up: an agent's last poll goes out at once", async () => {
    const answer = [200, { leader_epoch: 1, renewed: [], leases: [], log_ends: [], is_draining: false }] as const;
    const asked = Promise.withResolvers<void>();
    const net = network({
      [N1]: node("n1", ["n1", N1, 2], (_, { body }) => {
        if ((body as { max: number }).max === 0) return answer;
        asked.resolve();
        return "never";
      }),
    });
    const { work } = clientOf(net, [N1], 60_000);
    const agent = { name: "a", session: "s", kinds: ["work"], labels: {}, platform: "any", capacity: 1 };
    const poll = { agent, renew: [], progress: [], logs: [], max: 1, waitMs: 5_000, ttlMs: 5_000 };
    await work.lease({ ...poll, max: 0, waitMs: 0 });
    const stop = new AbortController();
    const parked = work.lease(poll, { signal: stop.signal });
    await asked.promise;
    stop.abort(new Error("stopping"));
    await expect(parked).rejects.toThrow("stopping");
    const { length: looks } = net.to("/leader");
    await work.lease({ ...poll, max: 0, waitMs: 0, poll: 2, answered: 0 });
    expect(net.to("/leader")).toHaveLength(looks);
  });

  it("asks again while nobody leads, and finds who was elected meanwhile", async () => {
    let asked = 0;
    const net = network({ [N1]: (path, sent) => node("n1", ++asked < 3 ? null : ["n1", N1, 5])(path, sent) });
    expect((await clientOf(net, [N1]).leader()).term).toBe(5);
    expect(asked).toBe(3);
  });

  it("says that there is no URL, also where the option is missing", () => {
    expect(() => createClient({} as never)).toThrowError(/there is no URL/);
  });

  it("does not go on asking where the key is refused", async () => {
    const net = network({ [N1]: () => [401, { error: "UNAUTHENTICATED", message: "no such key" }] });
    await expect(clientOf(net, [N1], 60_000).leader()).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
    expect(net.sent).toHaveLength(1);
  });

  it("says who said what where nobody leads, and where nobody answers", async () => {
    const down = clientOf(network({}), [N1, N2], 50).leader();
    await expect(down).rejects.toMatchObject({
      code: "BACKEND_UNAVAILABLE",
      message: expect.stringContaining("connection refused") as string,
    });
    const idle = clientOf(network({ [N1]: node("n1", null) }), [N1, N2], 50).leader();
    await expect(idle).rejects.toMatchObject({
      code: "ERR_NO_LEADER",
      message: expect.stringContaining("it knows no leader") as string,
    });
  });
});

describe("a 401", () => {
  it("names the option that the key is given with, whichever way it was met", async () => {
    const refused: Node = () => [401, { error: "UNAUTHENTICATED", message: "Send X-API-Key." }];
    const net = network({ [N1]: refused });
    const keyless = createClient({ urls: N1, fetch: net.fetch });
    const told = {
      code: "UNAUTHENTICATED",
      message: "Send X-API-Key. An API key is given with this client's option `key`.",
    };
    await expect(keyless.cluster()).rejects.toMatchObject(told);
    await expect(keyless.transfer()).rejects.toMatchObject(told);
    await expect(keyless.events().next()).rejects.toMatchObject(told);
    expect(await keyless.nodes()).toMatchObject([{ why: told.message }]);
    await expect(clientOf(net, [N1]).cluster()).rejects.toThrow("Check this client's option `key`.");
  });
});

describe("options", () => {
  it.each([
    ["kye", 'createClient: there is no option "kye"; did you mean key?'],
    ["url", 'createClient: there is no option "url"; did you mean urls?'],
    ["retries", 'createClient: there is no option "retries"; there are urls, key, fetch, timeoutMs, leaderWaitMs.'],
  ])("that do not exist are refused: %s", (name, message) => {
    expect(() => createClient({ urls: N1, [name]: 1 })).toThrow(
      expect.objectContaining({ code: "CONFIG_INVALID", message }),
    );
  });
});

describe("trap 64: credentials go to known members only", () => {
  const STRANGER = "http://10.0.0.9:80";

  it("a leader at an unknown address is not followed, and the message says what to do", async () => {
    const net = network({
      [N1]: node("n1", ["n2", STRANGER, 4], () => [200, { members: [{ url: N1 }] }]),
      [STRANGER]: () => MOVED,
    });
    await expect(clientOf(net, [N1]).transfer()).rejects.toThrow(/n2 leads at http:\/\/10\.0\.0\.9:80.*Add its URL/);
    expect(net.sent.filter(({ url }) => url === STRANGER)).toEqual([]);
  });

  it("NOT_LEADER that points to a stranger is not followed either", async () => {
    const net = network({ [N1]: node("n1", ["n1", N1, 4], () => notLeader(STRANGER)), [STRANGER]: () => MOVED });
    await expect(clientOf(net, [N1], 100).transfer()).rejects.toMatchObject({ code: "NOT_LEADER" });
    expect(net.sent.filter(({ url }) => url === STRANGER)).toEqual([]);
  });

  it("a member that a configured URL names is followed", async () => {
    const members = [200, { members: [{ url: N1 }, { url: N2 }] }] as const;
    const net = network({
      [N1]: node("n1", ["n2", N2, 4], () => members),
      [N2]: node("n2", ["n2", N2, 4], () => MOVED),
    });
    expect(await clientOf(net, [N1]).transfer()).toMatchObject({ newLeaderId: "n1" });
    expect(net.to("/v1/admin/transfer").map(({ url, key }) => [url, key])).toEqual([[N2, "secret"]]);
  });

  it("a member without TLS is not followed from URLs that have it", async () => {
    const members = [200, { members: [{ url: N2 }] }] as const;
    const net = network({ "https://n1": node("n1", ["n2", N2, 4], () => members), [N2]: () => MOVED });
    await expect(clientOf(net, ["https://n1"]).transfer()).rejects.toMatchObject({ code: "ERR_NO_LEADER" });
    expect(net.sent.filter(({ url }) => url === N2)).toEqual([]);
  });

  it("every request refuses redirects", async () => {
    const net = network({ [N1]: node("n1", ["n1", N1, 1], () => MOVED) });
    await clientOf(net, [N1]).transfer();
    expect(new Set(net.sent.map(({ redirect }) => redirect))).toEqual(new Set(["error"]));
  });

  it.each(["ftp://n1", "http://me:pw@n1", "n1:7100", "http://n1/?a=b", ""])("the URL %j is refused", (url) => {
    expect(() => clientOf(new Network(), [url])).toThrow();
  });
});

describe("trap 65: what is sent again", () => {
  it("NOT_LEADER is followed to the leader that it names: nothing was done", async () => {
    const net = network({
      [N1]: node("n1", ["n1", N1, 4], () => notLeader(N2)),
      [N2]: node("n2", ["n1", N1, 4], () => MOVED),
    });
    await clientOf(net, [N1, N2]).transfer({ target: "n1", force: true });
    expect(net.to("/v1/admin/transfer").map(({ url }) => url)).toEqual([N1, N2]);
    expect(net.to("/v1/admin/transfer")[0]?.body).toEqual({ target: "n1", force: true });
  });

  it("a transfer whose answer was lost is not, and its outcome is unknown", async () => {
    const net = network({ [N1]: node("n1", ["n1", N1, 4], () => failed("ECONNRESET")) });
    await expect(clientOf(net, [N1]).transfer()).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    expect(net.to("/v1/admin/transfer")).toHaveLength(1);
  });

  it("a transfer that was not answered in time has an unknown outcome too", async () => {
    const net = network({ [N1]: node("n1", ["n1", N1, 4], () => "never") });
    await expect(clientOf(net, [N1], 60).transfer()).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
  });

  it("a request that never left the machine is", async () => {
    let refused = 0;
    const leader = node("n1", ["n1", N1, 4], () => (++refused < 3 ? failed("ECONNREFUSED") : MOVED));
    await clientOf(network({ [N1]: leader }), [N1]).transfer();
    expect(refused).toBe(3);
  });

  it("a request that did not arrive in time is, whatever it would change: with 408 the server says that it did nothing", async () => {
    const late = [408, { error: "REQUEST_TIMEOUT", message: "sent too slowly" }] as const;
    const asked = { leader: 0, transfer: 0 };
    const leads = node("n1", ["n1", N1, 4], () => (++asked.transfer < 4 ? late : MOVED));
    const net = network({
      [N1]: (path, sent) => (path === "/leader" && ++asked.leader < 4 ? late : leads(path, sent)),
    });
    await clientOf(net, [N1]).transfer();
    expect(asked).toEqual({ leader: 5, transfer: 4 });
  });

  it("an acquisition whose answer was lost is: the session makes it idempotent", async () => {
    let tries = 0;
    const net = network({
      [N1]: node("n1", ["n1", N1, 4], () =>
        ++tries === 1 ? failed("ECONNRESET") : [200, { granted: true, epoch: 9, ttl_ms: 5_000 }],
      ),
    });
    const request = { scope: "a/b", session: "s", identity: "me", ttlMs: 5_000, waitMs: 0 };
    expect(await clientOf(net, [N1]).scopes.acquire(request)).toEqual({ granted: true, epoch: 9, ttlMs: 5_000 });
    const body = { session: "s", identity: "me", ttl_ms: 5_000, wait_ms: 0 };
    expect(net.to("/v1/scopes/a%2Fb/acquire").map((sent) => sent.body)).toEqual([body, body]);
  });

  it("trap 66: where an earlier attempt may have been done, no later refusal makes it a failure", async () => {
    let tries = 0;
    const net = network({
      [N1]: node("n1", ["n1", N1, 4], () =>
        ++tries === 1 ? failed("ECONNRESET") : [429, { error: "RATE_LIMITED", message: "too many" }],
      ),
    });
    const hold = { scope: "s", session: "s", epoch: 3 };
    await expect(clientOf(net, [N1]).scopes.resign(hold)).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    tries = 0;
    const over = network({
      [N1]: node("n1", ["n1", N1, 4], () =>
        ++tries === 1 ? failed("ECONNRESET") : [409, { error: "STALE_EPOCH", message: "epoch 3 is over" }],
      ),
    });
    await expect(clientOf(over, [N1]).scopes.renew(hold)).rejects.toMatchObject({ code: "STALE_EPOCH" });
  });

  it("what the leader refuses is not, whatever the registry says of a later try", async () => {
    const refusal = [
      409,
      { error: "ERR_LEADER_TRANSFER_FAILED", code: 4003, message: "n2 did not take over" },
    ] as const;
    const net = network({ [N1]: node("n1", ["n1", N1, 4], () => refusal) });
    await expect(clientOf(net, [N1]).transfer()).rejects.toMatchObject({
      code: "ERR_LEADER_TRANSFER_FAILED",
      message: "n2 did not take over",
    });
    expect(net.to("/v1/admin/transfer")).toHaveLength(1);
  });

  it("two nodes that point at each other are followed a bounded number of times", async () => {
    const net = network({
      [N1]: node("n1", ["n2", N2, 4], () => notLeader(N2)),
      [N2]: node("n2", ["n2", N2, 4], () => notLeader(N1)),
    });
    await expect(clientOf(net, [N1, N2], 200).transfer()).rejects.toMatchObject({ code: "NOT_LEADER" });
    expect(net.to("/v1/admin/transfer").length).toBeLessThan(30);
  });
});

describe("reads", () => {
  const view = (nodeId: string) => [200, { node_id: nodeId, members: [], not_ready_reason: null }] as const;

  it("go to the next node where one is down or silent", async () => {
    const net = network({ [N2]: () => "never", [N3]: () => view("n3") });
    expect(await clientOf(net, [N1, N2, N3], 60_000).cluster()).toMatchObject({ nodeId: "n3", notReadyReason: null });
  });

  it("are sent once more over another connection where the server has just given up an idle one", async () => {
    let asked = 0;
    const net = network({ [N1]: () => (++asked === 1 ? [408, "<html>"] : view("n1")) });
    expect(await clientOf(net, [N1]).cluster()).toMatchObject({ nodeId: "n1" });
    const never = network({ [N1]: () => [408, "<html>"] });
    await expect(clientOf(never, [N1]).cluster()).rejects.toThrow(/did not arrive there in time/);
  });

  it("end with what any node would say: a key that the leader does not know is not tried elsewhere", async () => {
    const net = network({
      [N1]: () => [401, { error: "UNAUTHENTICATED", message: "no such key", role: "LEADER" }],
      [N2]: () => view("n2"),
    });
    await expect(clientOf(net, [N1, N2]).cluster()).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
    expect(net.sent).toHaveLength(1);
  });

  it("carry how fresh they must be", async () => {
    const net = network({ [N1]: () => view("n1") });
    await clientOf(net, [N1]).cluster({ consistency: "linearizable", maxStaleMs: 50 });
    expect(net.sent[0]?.path).toBe("/v1/cluster?consistency=linearizable&max_stale_ms=50");
  });

  it("say what stands there instead of a Tenure server", async () => {
    const net = network({ [N1]: () => [404, "<html>"] });
    await expect(clientOf(net, [N1]).cluster()).rejects.toThrow(/it answered 404 .* is it a Tenure server/);
  });

  it("show each node's own answer, members that only the cluster names among them, and who is down", async () => {
    const members = [
      { node_id: "n1", url: N1 },
      { node_id: "n2", url: N2 },
      { node_id: "n3", url: N3 },
    ];
    const net = network({
      [N1]: () => [200, { node_id: "n1", members }],
      [N3]: () => [200, { node_id: "n3", members }],
    });
    const answers = await clientOf(net, [N1]).nodes();
    expect(answers.map(({ url, view: seen, why }) => [url, seen?.nodeId ?? why])).toEqual([
      [N1, "n1"],
      [N2, "connection refused"],
      [N3, "n3"],
    ]);
  });
});

describe("an AbortSignal", () => {
  it("ends every call at once, with its own reason", async () => {
    const net = network({ [N1]: node("n1", ["n1", N1, 4], () => "never") });
    const client = clientOf(net, [N1], 60_000);
    const calls = [
      (signal: AbortSignal) => client.transfer({}, { signal }),
      (signal: AbortSignal) => client.cluster({ signal }),
      (signal: AbortSignal) => client.nodes({ signal }),
      (signal: AbortSignal) => client.scopes.list({ signal }),
      (signal: AbortSignal) => client.saveSnapshot({ signal }),
    ];
    for (const call of calls) {
      const stop = new AbortController();
      const reason = new Error("enough");
      setTimeout(() => stop.abort(reason), 5);
      await expect(call(stop.signal)).rejects.toBe(reason);
    }
  });
});

describe("the list of scopes", () => {
  const view = (scope: string) => ({ scope, epoch: 1, holder: null });

  it("is read page by page, behind the name that each one ends with", async () => {
    const pages: Record<string, unknown> = {
      "/v1/scopes": { scopes: [view("a"), view("b&c")], next: "b&c" },
      "/v1/scopes?after=b%26c": { scopes: [view("d")], next: null },
    };
    const net = network({ [N1]: (path) => [200, pages[path]] });
    expect((await clientOf(net, [N1]).scopes.list()).map(({ scope }) => scope)).toEqual(["a", "b&c", "d"]);
    expect(net.sent.map(({ path }) => path)).toEqual(Object.keys(pages));
  });

  it("of a server that goes round in circles is given up", async () => {
    const net = network({ [N1]: () => [200, { scopes: [view("a")], next: "a" }] });
    await expect(clientOf(net, [N1]).scopes.list()).rejects.toMatchObject({ code: "BACKEND_UNSUPPORTED" });
    expect(net.sent).toHaveLength(2);
  });

  it("that is longer than what is read of one is refused with that reason, once, and not as an unknown outcome", async () => {
    const long = JSON.stringify({ scopes: [view("x".repeat(17 * 1024 * 1024))], next: null });
    const net = network({ [N1]: () => [200, long], [N2]: () => [200, long] });
    await expect(clientOf(net, [N1, N2], 10_000).scopes.list()).rejects.toMatchObject({
      code: "BACKEND_UNSUPPORTED",
      message: expect.stringContaining("longer than 16777216 bytes") as string,
    });
    expect(net.sent).toHaveLength(1);
  });
});
