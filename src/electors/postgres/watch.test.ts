// The observer on a clock that is moved by hand: what others gave it to call may throw.

import { expect, it } from "vitest";
import { seededRandom } from "../../core/kit/random.ts";
import { HandClock } from "../../loops/test-clock.ts";
import { settingsOf } from "./options.ts";
import { TestServer } from "../../postgres/test-server.ts";
import { Observer } from "./watch.ts";

const settings = settingsOf({ url: "postgres://h/d", epochStaleThresholdMs: 100, retryMinMs: 200, retryMaxMs: 200 });
const nothing = (): void => undefined;
const bug = (): never => {
  throw new Error("a bug of the user's");
};

/** In small steps: to connect takes more turns than one step waits for. */
async function pass(clock: HandClock, ms: number): Promise<void> {
  for (let step = 0; step < ms; step += 10) await clock.advance(10);
}

/** As the server tells of it: led, and its heartbeat is old. */
const ledIn = (epoch: number): object => ({
  key: "1",
  epoch: String(epoch),
  holder: "them",
  metadata: "{}",
  held: "true",
  age_ms: "5000",
});

function observing(epoch = 1) {
  const server = new TestServer();
  const state = { epoch, isDown: false };
  server.says["tenure_leader_state"] = () => {
    // An observer that never paused would go on here for ever, and no time would pass.
    if (server.sessions.length > 50) return Promise.withResolvers<[]>().promise;
    if (state.isDown) throw new Error("the connection broke");
    return [{ ...ledIn(state.epoch) }];
  };
  const clock = new HandClock();
  const logged: string[] = [];
  const error = (_fields: unknown, message: string): void => void logged.push(message);
  const logger = { info: nothing, warn: nothing, error };
  const tools = { driver: server, settings, clock, random: seededRandom("watch"), logger };
  return { server, state, clock, logged, tools };
}

it("goes on for everybody when a watcher's callback throws, and says so in the log", async () => {
  const { server, state, clock, logged, tools } = observing();
  const observer = new Observer(tools);
  const heard: (number | null)[] = [];
  observer.watch("1", "s", bug, nothing);
  observer.watch("1", "s", (leader) => heard.push(leader?.epoch ?? null), nothing);
  await pass(clock, 100);
  state.epoch = 2;
  await pass(clock, 1_100);
  expect(heard).toEqual([1, 2]);
  expect(logged).toEqual(Array(2).fill("a callback threw while the leader was observed"));
  // It was no fault of the session, which is one, and the other was the look for a pooler.
  expect(server.sessions).toHaveLength(2);
  observer.close();
});

it("goes on after an error when whoever is heard of it throws", async () => {
  const { state, clock, tools } = observing();
  const observer = new Observer(tools);
  const heard: (number | null)[] = [];
  const failures: unknown[] = [];
  observer.watch("1", "s", (leader) => heard.push(leader?.epoch ?? null), bug);
  observer.watch("1", "s", nothing, (error) => failures.push(error));
  state.isDown = true;
  await pass(clock, 1_000);
  expect(failures.length).toBeGreaterThan(1);
  state.isDown = false;
  await pass(clock, 1_000);
  expect(heard).toEqual([1]);
  const [leader] = await Promise.all([observer.read("1", "s"), pass(clock, 100)]);
  expect(leader?.epoch).toBe(1);
  observer.close();
});

it("pauses between attempts, though a session of its own ends with each", async () => {
  const { server, state, clock, tools } = observing();
  const observer = new Observer(tools);
  observer.watch("1", "s", nothing, nothing);
  state.isDown = true;
  await pass(clock, 1_000);
  // One each 200 ms, and the look for a pooler.
  expect(server.sessions.length).toBeGreaterThan(3);
  expect(server.sessions.length).toBeLessThanOrEqual(7);
  observer.close();
});

it("goes on when the logger throws, and whatever else throws with it", async () => {
  const { state, clock, tools } = observing();
  const observer = new Observer({ ...tools, logger: { info: bug, warn: bug, error: bug } });
  const heard: (number | null)[] = [];
  observer.watch("1", "s", bug, bug);
  observer.watch("1", "s", (leader) => heard.push(leader?.epoch ?? null), nothing);
  await pass(clock, 100);
  state.isDown = true;
  await pass(clock, 1_100);
  Object.assign(state, { isDown: false, epoch: 2 });
  await pass(clock, 1_100);
  expect(heard).toEqual([1, 2]);
  observer.close();
});
