// The shared session on a clock that is moved by hand: what real servers show too seldom.

import { describe, expect, it } from "vitest";
import { seededRandom } from "../../../core/kit/random.ts";
import { HandClock, settled } from "../../../loops/test-clock.ts";
import { Admission } from "../../../postgres/admission.ts";
import { settingsOf } from "../options.ts";
import { PollHub } from "./poll-hub.ts";
import { type TestSession, TestServer } from "../../../postgres/test-server.ts";

const TRY = "pg_try_advisory_lock";
const UNLOCK = "pg_advisory_unlock";
const settings = settingsOf({ url: "postgres://h/d", wait: "poll", retryMinMs: 400, retryMaxMs: 400 });
const nothing = (): void => undefined;

async function open(): Promise<{ server: TestServer; clock: HandClock; hub: PollHub; session: TestSession }> {
  const server = new TestServer();
  const clock = new HandClock();
  const admission = new Admission(server, settings);
  const hub = new PollHub({ driver: server, admission, settings }, clock, seededRandom("hub"));
  await hub.open();
  const [session] = server.sessions;
  if (session === undefined) throw new Error("no session");
  return { server, clock, hub, session };
}

/** Answers the next question for keys when it is told to. */
function heldBack(server: TestServer): (granted: readonly string[]) => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<readonly { key: string }[]>();
  server.says[TRY] = () => promise;
  return async (granted) => {
    delete server.says[TRY];
    resolve(granted.map((key) => ({ key })));
    await settled();
  };
}

describe("the polling session", () => {
  it("asks for all keys in one statement, again and again", async () => {
    const { server, clock, hub } = await open();
    const asked: unknown[] = [];
    server.says[TRY] = ([keys]) => {
      asked.push(keys);
      return [];
    };
    hub.take("1", nothing).line.catch(nothing);
    hub.take("2", nothing).line.catch(nothing);
    await clock.advance(0);
    await clock.advance(400);
    expect(asked).toEqual([
      ["1", "2"],
      ["1", "2"],
    ]);
  });

  it("is not put off by a storm of notifications", async () => {
    const { server, clock, hub, session } = await open();
    hub.take("1", nothing).line.catch(nothing);
    await clock.advance(0);
    const before = server.count(TRY);
    for (let ms = 0; ms < 200; ms++) {
      session.events.notified?.(settings.channel, "1:2");
      await clock.advance(1);
    }
    expect(server.count(TRY) - before).toBeGreaterThanOrEqual(200 / 20);
  });

  it("asks at once for who came while the others were asked for", async () => {
    const { server, clock, hub } = await open();
    const answer = heldBack(server);
    hub.take("1", nothing).line.catch(nothing);
    await clock.advance(0);
    hub.take("2", nothing).line.catch(nothing);
    await clock.advance(1);
    expect(server.count(TRY)).toBe(1);
    await answer([]);
    await clock.advance(1);
    expect(server.count(TRY)).toBe(2);
  });

  it("unlocks what was granted to somebody who had left", async () => {
    const { server, clock, hub } = await open();
    const answer = heldBack(server);
    const taking = hub.take("1", nothing);
    await clock.advance(0);
    taking.cancel();
    await expect(taking.line).rejects.toThrow("abandoned");
    await answer(["1"]);
    expect(server.count(UNLOCK)).toBe(1);
  });

  it("trap 40: never asks for a key that it has, nor for one that is being unlocked", async () => {
    const { server, clock, hub } = await open();
    server.says[TRY] = () => [{ key: "1" }];
    const line = await Promise.all([hub.take("1", nothing).line, clock.advance(0)]).then(([first]) => first);
    const unlocking = Promise.withResolvers<[]>();
    server.says[UNLOCK] = () => unlocking.promise;
    const second = hub.take("1", nothing);
    await clock.advance(1_000);
    hub.drop(line, "1");
    await clock.advance(1_000);
    expect(server.count(TRY)).toBe(1);
    unlocking.resolve([]);
    await clock.advance(400);
    expect(server.count(TRY)).toBe(2);
    await second.line;
  });

  /** Two scopes that are led on it, and a statement of theirs that the server has owed an answer for too long. */
  async function stalled() {
    const opened = await open();
    const { server, clock, hub } = opened;
    server.says[TRY] = () => [{ key: "1" }, { key: "2" }];
    const told: string[] = [];
    const taking = ["1", "2"].map((key) => hub.take(key, () => told.push(key)).line);
    const [[line]] = await Promise.all([Promise.all(taking), clock.advance(0)]);
    if (line === undefined) throw new Error("no line");
    const beat = Promise.withResolvers<[]>();
    server.says["tenure_beat"] = () => beat.promise;
    line.ask("select tenure_beat()", [], 60_000).catch(nothing);
    await clock.advance(settings.session.statementMs + 1);
    return { ...opened, told, line, beat };
  }

  it("who leaves in the middle of a stall ends nobody else's term, and is unlocked when the answer comes", async () => {
    const { server, hub, told, line, beat } = await stalled();
    hub.drop(line, "1");
    await settled();
    expect(told).toEqual([]);
    expect(line.hasEnded).toBe(false);
    beat.resolve([]);
    await settled();
    expect(server.count(UNLOCK)).toBe(1);
    expect(line.hasEnded).toBe(false);
  });

  it("who leaves last in the middle of a stall destroys the session (trap 39)", async () => {
    const { hub, told, line } = await stalled();
    hub.drop(line, "1");
    hub.drop(line, "2");
    await settled();
    expect(line.hasEnded).toBe(true);
    expect(told).toEqual([]);
  });

  it("tells takers and waiters when it ends, and a latecomer too", async () => {
    const { server, clock, hub, session } = await open();
    server.says[TRY] = () => [{ key: "1" }];
    const told: string[] = [];
    await Promise.all([hub.take("1", () => told.push("1")).line, clock.advance(0)]);
    const waiting = hub.take("2", nothing).line;
    session.break();
    await expect(waiting).rejects.toThrow("closed the connection");
    expect(told).toEqual(["1"]);
    await expect(hub.take("3", nothing).line).rejects.toThrow("ended before it asked");
  });

  it("does not take a session for ready that ended in the packet of its last answer", async () => {
    const server = new TestServer();
    const clock = new HandClock();
    server.says["listen"] = () => {
      server.sessions[0]?.break();
      return [];
    };
    const tools = { driver: server, admission: new Admission(server, settings), settings };
    await expect(new PollHub(tools, clock, seededRandom("hub")).open()).rejects.toThrow("ended as it was ready");
  });

  it("destroys a session that does not answer, and tells everybody why", async () => {
    const { server, clock, hub } = await open();
    heldBack(server);
    const waiting = hub.take("1", nothing).line;
    const told = expect(waiting).rejects.toThrow("did not answer within 6000 ms");
    await clock.advance(6_001);
    await told;
  });

  it("opens one session for all who ask at once, and another after it ended", async () => {
    const { server, hub, session } = await open();
    session.break();
    const sessions = server.sessions.length;
    const lines = await Promise.all([hub.open(), hub.open(), hub.open()]);
    expect(new Set(lines).size).toBe(1);
    expect(server.sessions.length).toBe(sessions + 1);
  });
});
