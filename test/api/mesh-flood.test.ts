// A site that has sent too much is refused before its next body is read; one that goes on is held, and its connection closed.

import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { HELD_MS } from "../../src/api/limits.ts";
import { ManualClock } from "../../src/loops/test-clock.ts";
import type { Arrival, MeshLinks } from "../../src/ports/mesh/links.ts";
import { waitFor } from "../servers/index.ts";
import { startApi } from "./test-api.ts";

const PATH = "/api/events/broadcast";
const NO_JSON = "{";
/** More than the sockets of both ends take. */
const HUGE_BYTES = 64 * 1024 * 1024;

function linksOf(arrival: () => Arrival, asked: string[], wasted: number[] = []): MeshLinks {
  return {
    isEvicted: () => false,
    wasted: (_controller: string, bytes: number) => void wasted.push(bytes),
    arrives: (controller: string) => {
      asked.push(controller);
      return arrival();
    },
  } as unknown as MeshLinks;
}

/** A delivery that says how long its body is, and what has come back by now. */
function deliver(port: number, bytes: number, body: string | Uint8Array) {
  const socket = connect(port, "127.0.0.1");
  const seen = { text: "", isClosed: false, isTaken: false };
  const head = ["Host: x", "X-API-Key: controller-key", "Content-Type: application/json", `Content-Length: ${bytes}`];
  socket.on("data", (data) => (seen.text += String(data)));
  socket.on("error", () => undefined);
  socket.once("close", () => (seen.isClosed = true));
  socket.write(`POST ${PATH} HTTP/1.1\r\n${head.join("\r\n")}\r\n\r\n`);
  socket.write(body, (error) => (seen.isTaken = (error ?? null) === null));
  onTestFinished(() => void socket.destroy());
  return { socket, seen };
}

test("what a site sends that has to wait is not even parsed; what an operator sends is", async () => {
  const asked: string[] = [];
  await using t = await startApi({ links: linksOf(() => ({ kind: "limited", retryAfterMs: 1_200 }), asked) });
  const refused = await t.call("POST", PATH, NO_JSON, "controller-key");
  expect(refused).toMatchObject({ status: 429, json: { error: "RATE_LIMITED" } });
  expect(refused.headers.get("retry-after")).toBe("2");
  expect(refused.headers.get("connection")).toBe("keep-alive");
  expect(asked).toHaveLength(1);
  expect(await t.call("POST", PATH, NO_JSON, "operator-key")).toMatchObject({ status: 400 });
});

test("a site that may send is heard; and every route counts, also those that it may not call", async () => {
  const asked: string[] = [];
  const wasted: number[] = [];
  await using t = await startApi({ links: linksOf(() => ({ kind: "let-in" }), asked, wasted) });
  expect(await t.call("POST", PATH, NO_JSON, "controller-key")).toMatchObject({ status: 400 });
  expect(await t.call("POST", "/v1/mesh/stream", NO_JSON, "controller-key")).toMatchObject({ status: 400 });
  expect(await t.call("GET", "/v1/jobs", undefined, "controller-key")).toMatchObject({ status: 403 });
  expect(await t.call("GET", "/nothing", undefined, "controller-key")).toMatchObject({ status: 404 });
  expect(asked).toHaveLength(4);
  await waitFor("bytes of what was no JSON to be charged", async () => String(wasted) === "1,1");
});

test("a site that does not wait is held with its body unread while others are served, then refused and closed", async () => {
  const clock = new ManualClock();
  const asked: string[] = [];
  await using t = await startApi({ clock, links: linksOf(() => ({ kind: "early" }), asked) });
  const begun = deliver(t.port, 100, NO_JSON);
  const huge = deliver(t.port, HUGE_BYTES, new Uint8Array(HUGE_BYTES));
  await waitFor("both to have arrived", async () => asked.length === 2);
  expect(await t.call("POST", PATH, NO_JSON, "operator-key")).toMatchObject({ status: 400 });
  expect(await t.call("GET", "/v1/jobs", undefined, "viewer-key")).toMatchObject({ status: 200 });
  expect([begun.seen.text, huge.seen.text]).toEqual(["", ""]);
  await clock.advance(HELD_MS);
  await waitFor("both to be closed", async () => begun.seen.isClosed && huge.seen.isClosed);
  expect(begun.seen.text).toMatch(/^HTTP\/1\.1 429 /);
  expect(begun.seen.text.toLowerCase()).toContain("\r\nconnection: close\r\n");
  expect(begun.seen.text.toLowerCase()).toContain("\r\nretry-after: 1\r\n");
  expect(huge.seen.isTaken, "its body was read").toBe(false);
});

test("a server that stops waits for nobody whom it holds", async () => {
  const asked: string[] = [];
  // Its time does not pass: nothing but the stop itself ends what is held.
  await using t = await startApi({ clock: new ManualClock(), links: linksOf(() => ({ kind: "early" }), asked) });
  const begun = deliver(t.port, 100, NO_JSON);
  const huge = deliver(t.port, HUGE_BYTES, new Uint8Array(HUGE_BYTES));
  await waitFor("both to have arrived", async () => asked.length === 2);
  await t.api.stop(60_000);
  await waitFor("both to be closed", async () => begun.seen.isClosed && huge.seen.isClosed);
  expect(begun.seen.text).toMatch(/^HTTP\/1\.1 503 /);
  expect(huge.seen.isTaken, "its body was read").toBe(false);
});
