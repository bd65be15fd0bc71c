// A key that a node does not know: whether it is the cluster's is not this node's to say while it has not caught up.

import { describe, expect, it } from "vitest";
import type { ApiKey } from "../../src/contract/index.ts";
import { sha256, startApi, type TestApi } from "./test-api.ts";

const NO_KEYS: readonly ApiKey[] = [];

async function answers(t: TestApi, key: string | null = "secret", path = "/v1/jobs") {
  const { status, json } = await t.call("GET", path, undefined, key);
  return [status, json?.["error"]];
}

describe("a key that this node does not know", () => {
  it("is not refused by a node that has not caught up: 503, and whoever sent it may try another node", async () => {
    await using t = await startApi();
    Object.assign(t.cluster, { isReady: false, notReadyReason: "is no member of the cluster yet" });
    t.cluster.follow(null);
    const { status, json, headers } = await t.call("GET", "/v1/jobs", undefined, "secret");
    expect([status, json?.["error"], headers.get("retry-after")]).toEqual([503, "CALLER_UNCONFIRMED", "1"]);
    expect(json?.["message"]).toContain("is no member of the cluster yet");
    expect(json).toMatchObject({ node_id: "n1" });
    // Nobody is asked for what more than a moment's waiting would bring.
    expect(t.cluster.catchUps).toBe(0);
    expect(await answers(t, "viewer-key")).toEqual([200, undefined]);
  });

  it("is known as soon as this node has caught up with the leader", async () => {
    await using t = await startApi();
    t.cluster.follow("n2");
    t.cluster.onCatchUp = () => t.keys.apply("ci", "viewer", sha256("secret"));
    expect(await answers(t)).toEqual([200, undefined]);
    expect(await answers(t)).toEqual([200, undefined]);
    expect(t.cluster.catchUps).toBe(1);
  });

  it("is refused by a node that has everything, which says whether it leads", async () => {
    await using t = await startApi();
    const refusal = async () => (await t.call("GET", "/v1/jobs", undefined, "wrong")).json;
    expect(await refusal()).toMatchObject({ error: "UNAUTHENTICATED", node_id: "n1", role: "LEADER" });
    t.cluster.follow("n2");
    expect(await refusal()).toMatchObject({ error: "UNAUTHENTICATED", node_id: "n1", role: "STANDBY" });
    expect(t.cluster.catchUps).toBe(2);
  });

  it("is not refused by a leader that no majority confirms, nor where nobody is known to lead", async () => {
    await using t = await startApi();
    t.cluster.isCutOff = true;
    expect(await answers(t)).toEqual([503, "CALLER_UNCONFIRMED"]);
    t.cluster.follow(null);
    expect(await answers(t)).toEqual([503, "CALLER_UNCONFIRMED"]);
  });

  it("of a longer or no text is refused at once, and costs nobody anything", async () => {
    await using t = await startApi();
    expect(await answers(t, "")).toEqual([401, "UNAUTHENTICATED"]);
    expect(await answers(t, "x".repeat(1_025))).toEqual([401, "UNAUTHENTICATED"]);
    expect(t.cluster.catchUps).toBe(0);
  });

  it("with too low a role here is asked about too: it may have another by now", async () => {
    await using t = await startApi();
    t.keys.apply("ci", "viewer", sha256("secret"));
    const submit = async () => (await t.call("POST", "/v1/jobs", { kind: "build" }, "secret")).status;
    expect(await submit()).toBe(403);
    t.cluster.onCatchUp = () => t.keys.apply("ci", "submitter", sha256("secret"));
    expect(await submit()).toBe(200);
    expect(t.cluster.catchUps).toBe(2);
    Object.assign(t.cluster, { isReady: false });
    expect((await t.call("POST", "/v1/leases", {}, "secret")).status).toBe(503);
  });
});

describe("many wrong keys", () => {
  it("share one round, that begins after all of them were shown; whoever comes later waits for the next", async () => {
    await using t = await startApi({ limits: { keyRoundEveryMs: 0 } });
    const rounds: (() => void)[] = [];
    t.cluster.onCatchUp = () => new Promise((resolve) => rounds.push(resolve));
    const first = answers(t, "wrong");
    await until(() => rounds.length === 1);
    const later = Array.from({ length: 20 }, (_, at) => answers(t, at === 0 ? "secret" : `wrong ${at}`));
    await until(() => t.api.stats().inFlight === 21);
    // Made after the first round began: the first must not answer for it.
    t.keys.apply("ci", "viewer", sha256("other"));
    rounds[0]!();
    expect(await first).toEqual([401, "UNAUTHENTICATED"]);
    await until(() => rounds.length === 2);
    t.keys.apply("ci", "viewer", sha256("secret"));
    rounds[1]!();
    const [valid, ...wrong] = await Promise.all(later);
    expect(valid).toEqual([200, undefined]);
    expect(new Set(wrong.map(String))).toEqual(new Set(["401,UNAUTHENTICATED"]));
    expect(t.cluster.catchUps).toBe(2);
  });

  it("do not make more rounds than one in a while, one after the other either", async () => {
    await using t = await startApi({ limits: { keyRoundEveryMs: 60_000 } });
    expect(await answers(t, "wrong")).toEqual([401, "UNAUTHENTICATED"]);
    const waiting = Array.from({ length: 10 }, () => answers(t, "wrong").catch(() => "cut"));
    await until(() => t.api.stats().inFlight === 10);
    expect(t.cluster.catchUps).toBe(1);
    await t.api.stop(0);
    expect(await Promise.all(waiting)).not.toContainEqual([401, "UNAUTHENTICATED"]);
  });

  it("beyond a bound are refused for now, while known keys go on", async () => {
    await using t = await startApi({ limits: { keyWaitersMax: 3 } });
    let go = (): void => undefined;
    t.cluster.onCatchUp = () => new Promise((resolve) => (go = resolve));
    const waiting = [answers(t, "a"), answers(t, "b"), answers(t, "c")];
    await until(() => t.api.stats().inFlight === 3 && t.cluster.catchUps === 1);
    expect(await answers(t, "d")).toEqual([503, "OVERLOADED"]);
    expect(await answers(t, "viewer-key")).toEqual([200, undefined]);
    t.cluster.onCatchUp = () => undefined;
    go();
    for (const answer of await Promise.all(waiting)) expect(answer).toEqual([401, "UNAUTHENTICATED"]);
  });
});

describe("a node that does not know yet that there are keys", () => {
  it("lets nobody in unknown, but shows what it says of itself", async () => {
    await using t = await startApi({ keys: NO_KEYS });
    t.cluster.isReady = false;
    for (const path of ["/v1/jobs", "/v1/stats", "/v1/scopes", "/v1/events?limit=1"])
      expect(await answers(t, null, path), path).toEqual([503, "CALLER_UNCONFIRMED"]);
    expect((await t.call("POST", "/v1/jobs", { kind: "build" }, null)).status).toBe(503);
    for (const path of ["/v1/cluster", "/leader", "/role", "/healthz", "/metrics", "/openapi.json"])
      expect((await t.call("GET", path, undefined, null)).status, path).toBe(200);
    // Once it has everything it knows that there are none, or that there are.
    t.cluster.isReady = true;
    expect(await answers(t, null)).toEqual([200, undefined]);
    t.keys.apply("ci", "viewer", sha256("secret"));
    expect(await answers(t, null)).toEqual([401, "UNAUTHENTICATED"]);
  });
});

async function until(isSo: () => boolean): Promise<void> {
  const untilMs = performance.now() + 30_000;
  while (!isSo()) {
    if (performance.now() > untilMs) throw new Error("it has not come to this in 30 s");
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
