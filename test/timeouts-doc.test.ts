// The waits of all layers (src/core/kit/timeouts.ts) in their order, and docs/reference/timeouts.md, which has the same numbers. An
// outer wait that ends before the waits inside of it makes a definite answer an unknown one (trap 84).

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { SCOPE_TTL_MS_MIN } from "../src/core/kit/limits.ts";
import * as timeouts from "../src/core/kit/timeouts.ts";

const table = { ...timeouts };
type Name = keyof typeof table;

interface Rule {
  /** They may follow one another in one request. */
  readonly inner: readonly Name[];
  readonly outer: Name | number;
  /** For the way there and back, and a busy machine. */
  readonly marginMs: number;
}

const ORDER: Readonly<Record<string, Rule>> = {
  "a refused mutation is heard before its attempt is given up": {
    inner: ["KEY_WAIT_MS", "TURNOVER_WAIT_MS", "VIEWS_WAIT_MS"],
    outer: "ATTEMPT_MS",
    marginMs: 500,
  },
  "a refused campaign is heard, after the time that it waits on purpose": {
    inner: ["KEY_WAIT_MS", "TURNOVER_WAIT_MS", "CONFIRM_WAIT_MS"],
    outer: "ATTEMPT_MS",
    marginMs: 500,
  },
  "a renewal that can't be confirmed is refused before it is sent elsewhere": {
    inner: ["CONFIRM_WAIT_MS"],
    outer: "RENEWAL_ATTEMPT_MS",
    marginMs: 100,
  },
  "a renewal is confirmed within the shortest lease": {
    inner: ["CONFIRM_WAIT_MS"],
    outer: SCOPE_TTL_MS_MIN,
    marginMs: 100,
  },
  "a call has time for three attempts": {
    inner: ["ATTEMPT_MS", "ATTEMPT_MS", "ATTEMPT_MS"],
    outer: "CALL_MS",
    marginMs: 500,
  },
  "a refused read is heard before its call is over": {
    inner: ["KEY_WAIT_MS", "LINEARIZABLE_WAIT_MS", "LINEARIZABLE_WAIT_MS", "READ_TURN_MS"],
    outer: "CALL_MS",
    marginMs: 500,
  },
  "a refused stream is heard before its opening is given up": {
    inner: [
      "KEY_WAIT_MS",
      "LINEARIZABLE_WAIT_MS",
      "LINEARIZABLE_WAIT_MS",
      "STREAM_TURN_MS",
      "STREAM_TURN_MS",
      "STREAM_TURN_MS",
    ],
    outer: "STREAM_OPEN_MS",
    marginMs: 500,
  },
  "one lost heartbeat is no silence": {
    inner: ["STREAM_HEARTBEAT_MS", "STREAM_HEARTBEAT_MS"],
    outer: "STREAM_SILENCE_MS",
    marginMs: 5_000,
  },
  "a stream that is cut is known as such before its reader calls it silent": {
    inner: ["STREAM_HEARTBEAT_MS", "STREAM_STALL_MS"],
    outer: "STREAM_SILENCE_MS",
    marginMs: 5_000,
  },
  "a page that is not taken in time is refused before its sender gives the request up": {
    inner: ["KEY_WAIT_MS", "TURNOVER_WAIT_MS", "PAGE_TAKEN_MS"],
    outer: "SITE_CALL_MS",
    marginMs: 2_000,
  },
  "lost heads are no silence between sites": {
    inner: ["SITE_HEADS_MS", "SITE_HEADS_MS", "SITE_HEADS_MS"],
    outer: "SITE_SILENCE_MS",
    marginMs: 5_000,
  },
  "a poll is answered before its agent gives it up, after the time that it waits on purpose": {
    inner: ["KEY_WAIT_MS", "TURNOVER_WAIT_MS"],
    outer: "POLL_ANSWER_MS",
    marginMs: 500,
  },
  "no connection is idle while a poll waits on it": {
    inner: ["LONG_POLL_MS_MAX", "ATTEMPT_MS"],
    outer: "CONNECTION_IDLE_MS",
    marginMs: 10_000,
  },
  "a connection is kept for the next poll": { inner: ["LONG_POLL_MS_MAX"], outer: "KEEP_ALIVE_MS", marginMs: 5_000 },
  "headers are a part of a request": { inner: ["HEADERS_MS"], outer: "REQUEST_ARRIVES_MS", marginMs: 1_000 },
  "a request arrives before its connection is idle": {
    inner: ["HANDSHAKE_MS", "REQUEST_ARRIVES_MS"],
    outer: "CONNECTION_IDLE_MS",
    marginMs: 10_000,
  },
  "a node that stops has handed over and answered before it is killed": {
    inner: ["HAND_OVER_MS", "STOP_GRACE_MS"],
    outer: secondsIn("deploy/systemd/tenure-server.service", /^TimeoutStopSec=(\d+)$/m),
    marginMs: 10_000,
  },
  "the same in Kubernetes": {
    inner: ["HAND_OVER_MS", "STOP_GRACE_MS"],
    outer: secondsIn("deploy/kubernetes/server.yaml", /terminationGracePeriodSeconds: (\d+)/),
    marginMs: 10_000,
  },
  "an agent that stops has ended its jobs before it is killed": {
    inner: ["AGENT_DRAIN_MS", "AGENT_GRACE_MS"],
    outer: secondsIn("deploy/systemd/tenure-agent.service", /^TimeoutStopSec=(\d+)$/m),
    marginMs: 10_000,
  },
  "the same agent in Kubernetes": {
    inner: ["AGENT_DRAIN_MS", "AGENT_GRACE_MS"],
    outer: secondsIn("deploy/kubernetes/agent.yaml", /terminationGracePeriodSeconds: (\d+)/),
    marginMs: 10_000,
  },
};

function secondsIn(file: string, pattern: RegExp): number {
  return Number(pattern.exec(readFileSync(file, "utf8"))![1]) * 1_000;
}

test.each(Object.entries(ORDER))("%s", (_what, { inner, outer, marginMs }) => {
  const insideMs = inner.reduce((sum, name) => sum + table[name], 0);
  const outsideMs = typeof outer === "number" ? outer : table[outer];
  expect(insideMs + marginMs, `${inner.join(" + ")} + ${marginMs} within ${outer}`).toBeLessThanOrEqual(outsideMs);
});

test("every wait of the table has its place in the order", () => {
  const placed = new Set(Object.values(ORDER).flatMap(({ inner, outer }) => [...inner, outer]));
  expect(Object.keys(table).filter((name) => !placed.has(name as Name))).toEqual([]);
});

test("docs/reference/timeouts.md has the same waits, in seconds, and the same order", () => {
  const text = readFileSync("docs/reference/timeouts.md", "utf8");
  const documented = [...text.matchAll(/^\| `([A-Z_]+)` \| ([\d.]+) s \|/gm)].map(([, name, seconds]) => [
    name,
    Number(seconds) * 1_000,
  ]);
  expect(Object.fromEntries(documented)).toEqual(table);
  for (const what of Object.keys(ORDER)) expect(text).toContain(`- ${what}`);
});
