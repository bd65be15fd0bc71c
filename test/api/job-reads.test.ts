// Jobs, agents, queues, schedules and logs, read on any node.

import { describe, expect, it } from "vitest";
import { JOB_ROUTES, type Route } from "../../src/contract/index.ts";
import { startApi } from "./test-api.ts";
import { agent, fits, lease, leasing, refOf, submit } from "./test-job-calls.ts";
import { openStream } from "./test-stream.ts";

describe("reads", () => {
  const READS = Object.values(JOB_ROUTES as Record<string, Route>)
    .filter(({ kind }) => kind === "read")
    .map(({ path }) => path.replace(":id", "job-1").replace(":sequence", "0"))
    .map((path) => (path === "/v1/events/proof" ? `${path}?sequence=1` : path));

  it.each(READS)("GET %s works on a standby without a leader, and says how fresh it is", async (path) => {
    await using t = await startApi();
    await submit(t);
    t.cluster.follow(null);
    const look = async (query: string) => {
      const asked = `${path}${path.includes("?") ? "&" : "?"}${query}`;
      if (path !== "/v1/events") return t.call("GET", asked);
      return t.call("HEAD", asked);
    };
    const { status, headers } = await look("");
    expect(status).toBe(200);
    expect([headers.get("x-tenure-node"), headers.get("x-tenure-role")]).toEqual(["n1", "STANDBY"]);
    expect(headers.get("x-tenure-staleness-ms")).toBe("5000");
    expect((await look("max_stale_ms=5000")).status).toBe(200);
    expect((await look("max_stale_ms=4999")).status).toBe(503);
    expect((await look("consistency=linearizable")).status).toBe(503);
    expect((await look("consistency=local")).status).toBe(200);
    t.cluster.follow("n2");
    expect((await look("consistency=linearizable")).status).toBe(200);
  });

  it("jobs are listed newest first, by what is asked, page by page, without what is large", async () => {
    await using t = await startApi();
    for (let i = 0; i < 5; i++) await submit(t, { kind: "build", payload: { word: `w${i}` } });
    await submit(t, { kind: "test", queue: "slow" });
    await lease(t);
    const list = async (query: string) => {
      const { status, json } = await t.call("GET", `/v1/jobs?${query}`, undefined, "viewer-key");
      expect(status).toBe(200);
      fits("jobs", json);
      return { ids: (json as { jobs: { id: string }[] }).jobs.map(({ id }) => id), json };
    };
    expect((await list("")).ids).toEqual(["job-6", "job-5", "job-4", "job-3", "job-2", "job-1"]);
    expect((await list("state=assigned,completed")).ids).toEqual(["job-1"]);
    expect((await list("kind=test")).ids).toEqual(["job-6"]);
    expect((await list("queue=slow")).ids).toEqual(["job-6"]);
    expect((await list("agent=a-1")).ids).toEqual(["job-1"]);
    expect((await list("search=w3")).ids).toEqual(["job-4"]);
    const first = await list("limit=4");
    expect((await list(`limit=4&cursor=${String(first.json?.["next"])}`)).ids).toEqual(["job-2", "job-1"]);
    expect(JSON.stringify(first.json)).not.toMatch(/payload|w3/);
    for (const query of [
      "state=none",
      "state=",
      "state=pending,",
      "limit=0",
      "limit=201",
      "kind=",
      "search=",
      "cursor=zzz",
    ]) {
      expect((await t.call("GET", `/v1/jobs?${query}`)).json?.["field"], query).toBe(query.split("=")[0]);
    }
  });

  it("views that lag are waited for where it is asked, and never taken for all there is", async () => {
    await using t = await startApi({ limits: { catchUpTimeoutMs: 200 } });
    const id = await submit(t);
    await t.call("POST", `/v1/jobs/${id}/cancel`, {});
    t.jobs.viewLag = 1;
    for (const path of [
      "/v1/jobs?consistency=linearizable",
      "/v1/jobs?max_stale_ms=1000",
      `/v1/jobs/${id}`,
      "/v1/jobs/x",
    ]) {
      const { status, json } = await t.call("GET", path);
      expect([path, status, json?.["error"]]).toEqual([path, 503, "TOO_STALE"]);
    }
    expect((await t.call("GET", "/v1/jobs")).json).toMatchObject({ position: 1 });
    // A job that runs and that they do not have yet has logged nothing so far; it is not gone.
    const live = await submit(t);
    expect((await t.call("GET", `/v1/jobs/${live}/logs`)).json).toMatchObject({ text: "", is_complete: false });
    const waiting = t.call("GET", `/v1/jobs/${id}`);
    await expect.poll(() => t.api.stats().inFlight).toBe(1);
    t.jobs.viewLag = 0;
    expect((await waiting).json?.["state"]).toBe("cancelled");
    expect((await t.call("GET", "/v1/jobs/x")).status).toBe(404);
  });

  it("a job that may have been run once more in events that are lost is shown as it was, but not as the present", async () => {
    await using t = await startApi();
    const id = await submit(t);
    await t.call("POST", `/v1/jobs/${id}/cancel`, {});
    const { job } = await t.jobs.get(id);
    t.jobs.find = async () => ({ kind: "found", job, mayBeOlder: true });
    for (const query of ["consistency=linearizable", "max_stale_ms=1000"]) {
      const { status, json } = await t.call("GET", `/v1/jobs/${id}?${query}`);
      expect([query, status, json?.["error"]]).toEqual([query, 410, "EVENTS_LOST"]);
    }
    expect((await t.call("GET", `/v1/jobs/${id}`)).json?.["state"]).toBe("cancelled");
  });

  it("views that are lost after they were there are not listed as if they were there still", async () => {
    await using t = await startApi({ limits: { catchUpTimeoutMs: 200 } });
    await submit(t);
    const list = t.jobs.list.bind(t.jobs);
    t.jobs.list = (query) => {
      t.jobs.viewLag = 1;
      return list(query);
    };
    const { status, json } = await t.call("GET", "/v1/jobs?consistency=linearizable");
    expect([status, json?.["error"]]).toEqual([503, "TOO_STALE"]);
  });

  it("a log is not called complete by views that may lack a part of it", async () => {
    await using t = await startApi({ limits: { catchUpTimeoutMs: 200 } });
    const id = await submit(t);
    await lease(t);
    t.jobs.print(id, 1, "hello");
    // It has ended, and the views are not there yet: memory has it, as one that was finished lately.
    t.jobs.loggedUpTo = () => t.events.head().sequence + 1;
    const { status, json } = await t.call("GET", `/v1/jobs/${id}/logs`);
    expect([status, json?.["error"]]).toEqual([503, "TOO_STALE"]);
    t.jobs.loggedUpTo = () => t.events.head().sequence;
    expect((await t.call("GET", `/v1/jobs/${id}/logs`)).json).toMatchObject({ text: "hello" });
  });

  it("agents, queues and schedules are listed by name, page by page", async () => {
    await using t = await startApi();
    const names = ["b", "a", "d", "c", "e"];
    for (const name of names) {
      await t.call("POST", "/v1/leases", { ...leasing, agent: { ...agent, name }, max: 0 });
      await t.call("POST", `/v1/queues/${name}/pause`);
      const body = { cron: "0 3 * * *", time_zone: "Europe/Berlin", spec: { kind: "build" } };
      expect((await t.call("PUT", `/v1/schedules/${name}`, body, "submitter-key")).json).toEqual({});
    }
    for (const [id, field] of [
      ["agents", "name"],
      ["queues", "queue"],
      ["schedules", "name"],
    ] as const) {
      const seen: unknown[] = [];
      for (let query = "?limit=2"; query !== "";) {
        const { json } = await t.call("GET", `/v1/${id}${query}`, undefined, "viewer-key");
        fits(id, json);
        seen.push(...(json as Record<string, Record<string, unknown>[]>)[id]!.map((one) => one[field]));
        const next = json?.["next"] as string | null;
        query = next === null ? "" : `?limit=2&after=${next}`;
      }
      expect(seen).toEqual(["a", "b", "c", "d", "e"]);
    }
    const { json } = await t.call("GET", "/v1/schedules?limit=1");
    expect(json?.["schedules"]).toMatchObject([
      {
        name: "a",
        time_zone: "Europe/Berlin",
        overlap: "skip",
        catch_up: "last",
        paused: false,
        spec: { kind: "build" },
      },
    ]);
    const wrong = await t.call("PUT", "/v1/schedules/x", { cron: "often", spec: { kind: "build" } });
    expect([wrong.status, wrong.json?.["error"]]).toEqual([400, "SCHEDULE_INVALID"]);
    fits("stats", (await t.call("GET", "/v1/stats")).json);
  });
});

describe("logs", () => {
  it("that are followed take a place among the streams, and give it back", async () => {
    await using t = await startApi({ limits: { streamsMax: 1 } });
    const id = await submit(t);
    await lease(t);
    const path = `/v1/jobs/${id}/logs?follow=true`;
    const following = await openStream(t, path);
    expect([following.status, t.api.stats().streams]).toEqual([200, 1]);
    expect((await t.call("GET", path)).json?.["error"]).toBe("OVERLOADED");
    expect((await t.call("GET", "/v1/events")).json?.["error"]).toBe("OVERLOADED");
    // What does not stay open needs none.
    expect((await t.call("GET", `/v1/jobs/${id}/logs`)).status).toBe(200);
    following[Symbol.dispose]();
    await expect.poll(() => t.api.stats().streams).toBe(0);
    expect((await t.call("HEAD", path)).status).toBe(200);
    expect(t.api.stats().streams).toBe(0);
  });

  it("are read in pages, and followed to their end", async () => {
    await using t = await startApi({ limits: { heartbeatMs: 40 } });
    const id = await submit(t);
    const given = await lease(t);
    t.jobs.print(id, 1, "one\n");
    const page = await t.call("GET", `/v1/jobs/${id}/logs`, undefined, "viewer-key");
    fits("jobLogs", page.json);
    expect(page.json).toEqual({ job_id: id, attempt: 1, offset: 0, text: "one\n", next_offset: 4, is_complete: false });
    using stream = await openStream(t, `/v1/jobs/${id}/logs?follow=true`);
    const texts = () => stream.shown.map(({ data }) => (JSON.parse(data ?? "") as { text?: string }).text);
    await expect.poll(texts).toEqual(["one\n"]);
    // Others print too: what wakes the reader is only its own job.
    t.events.append({ eventType: "worker:offline", entityId: "a-9", entityType: "worker", payload: {} });
    t.jobs.print(id, 1, "two\n");
    await expect.poll(texts).toEqual(["one\n", "two\n"]);
    expect(stream.lastId).toBe("1:8");
    await expect.poll(() => stream.frames.some(({ comment }) => comment === "heartbeat")).toBe(true);
    using resumed = await openStream(t, `/v1/jobs/${id}/logs?follow=true`, { "last-event-id": "1:4" });
    await expect.poll(() => resumed.shown[0]?.data).toContain("two");
    const result = { session: "s-1", ...refOf(given), leader_epoch: 7, outcome: "completed" };
    await t.call("POST", "/v1/results", result);
    await expect.poll(() => [stream.ended, stream.shown.at(-1)?.event]).toEqual(["end", "end"]);
    await expect.poll(() => resumed.ended).toBe("end");
    expect((await t.call("GET", `/v1/jobs/${id}/logs?offset=4`)).json).toMatchObject({
      text: "two\n",
      is_complete: true,
    });
    for (const last of ["5", "2:0"]) {
      const odd = await t.call("GET", `/v1/jobs/${id}/logs`, undefined, "viewer-key", { "last-event-id": last });
      expect([last, odd.status, odd.json?.["field"]]).toEqual([last, 400, "Last-Event-ID"]);
    }
    expect((await t.call("GET", "/v1/jobs/none/logs?follow=true")).status).toBe(404);
  });

  it("a page of schedules with large payloads ends early, and says where it goes on", async () => {
    await using t = await startApi();
    const body = { cron: "0 3 * * *", spec: { kind: "build", payload: "x".repeat(60_000) } };
    const names = Array.from({ length: 40 }, (_, at) => `s${at + 10}`);
    for (const name of names) expect((await t.call("PUT", `/v1/schedules/${name}`, body)).status).toBe(200);
    const seen: string[] = [];
    let [pages, after] = [0, ""];
    for (let next: unknown = ""; next !== null; pages++) {
      const { json } = await t.call("GET", `/v1/schedules${after}`);
      expect(JSON.stringify(json).length).toBeLessThan(1_200_000);
      seen.push(...(json!["schedules"] as { name: string }[]).map(({ name }) => name));
      next = json?.["next"];
      after = `?after=${String(next)}`;
    }
    expect(seen).toEqual(names);
    expect(pages).toBe(3);
  });
});
