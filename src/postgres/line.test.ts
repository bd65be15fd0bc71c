// Whose turn it is on a session that several share.

import { expect, it } from "vitest";
import { HandClock, settled } from "../loops/test-clock.ts";
import { Line } from "./line.ts";
import { TestServer } from "./test-server.ts";

it("what is urgent waits for the statement that runs, and for none that waits; the rest keep their order", async () => {
  const server = new TestServer();
  const line = new Line(server, new HandClock());
  const slow = Promise.withResolvers<[]>();
  server.says["bump 1"] = () => slow.promise;
  const asked = [line.ask("bump 1"), line.ask("bump 2"), line.ask("bump 3")];
  const beats = [line.askUrgently("beat 1", [], 1_000), line.askUrgently("beat 2", [], 1_000)];
  await settled();
  expect(server.asked).toEqual(["bump 1"]);
  slow.resolve([]);
  await Promise.all([...asked, ...beats]);
  expect(server.asked).toEqual(["bump 1", "beat 1", "beat 2", "bump 2", "bump 3"]);
});

it("goes on with the next when one fails, and is free for a latecomer", async () => {
  const server = new TestServer();
  const line = new Line(server, new HandClock());
  server.says["bad"] = () => Promise.reject(new Error("no such thing"));
  const bad = line.ask("bad");
  const good = line.ask("good");
  await expect(bad).rejects.toThrow("no such thing");
  await good;
  await line.ask("late");
  expect(server.asked).toEqual(["bad", "good", "late"]);
});

it("trap 44: takes the moment of a statement when it is sent, not when it was queued", async () => {
  const server = new TestServer();
  const clock = new HandClock();
  const line = new Line(server, clock);
  const slow = Promise.withResolvers<[]>();
  server.says["slow"] = () => slow.promise;
  line.ask("slow").catch(() => undefined);
  const queuedMs = clock.now.monotonicMs;
  const beat = line.askUrgently("beat", [], 1_000);
  await clock.advance(700);
  slow.resolve([]);
  expect((await beat).sentAt.monotonicMs).toBe(queuedMs + 700);
});
