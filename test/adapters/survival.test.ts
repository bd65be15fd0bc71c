// Two processes that lead in turn through each adapter, while the database restarts (fast and immediate), sessions are terminated,
// the database fails over to its standby, and the leader is frozen and killed: who was not killed lives, nothing is written twice
// or lost, and no old epoch after a new one.

import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type PostgresPair, type PostgresServer, startPostgresPair, waitFor } from "../servers/index.ts";
import { APPLICATION, LIBRARIES, type LibraryName } from "./test-libraries.ts";
import type { LoopTask } from "./test-loop.ts";

const LOOP = fileURLToPath(new URL("test-loop.ts", import.meta.url));
const WRITES = 20;
const END_SESSIONS = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1";
/** Epochs of the standby's timeline lie above (trap 38). */
const PROMOTED_EPOCH_MIN = 2 ** 32;

type Said = Readonly<Record<string, unknown>>;

class Loop {
  readonly said: Said[] = [];
  errors = "";
  readonly #child: ChildProcess;

  constructor(task: LoopTask) {
    this.#child = spawn(process.execPath, [LOOP, JSON.stringify(task)], { stdio: ["ignore", "pipe", "pipe"] });
    createInterface({ input: this.#child.stdout! }).on("line", (line) => this.said.push(JSON.parse(line) as Said));
    this.#child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.errors += text;
    });
  }

  get lives(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get isLeading(): boolean {
    return this.said.findLast(({ said }) => said === "leading" || said === "ended")?.["said"] === "leading";
  }

  get wrote(): string[] {
    return this.said.filter(({ said }) => said === "wrote").map(({ entry }) => String(entry));
  }

  kill(signal: "SIGSTOP" | "SIGCONT" | "SIGKILL"): void {
    this.#child.kill(signal);
  }

  async end(): Promise<void> {
    this.kill("SIGCONT");
    this.kill("SIGKILL");
    await waitFor("a loop to end", () => !this.lives);
  }
}

let pair: PostgresPair;
const loops: Loop[] = [];

async function makeTables(server: PostgresServer): Promise<void> {
  await server.query("create table counter (n bigint not null)");
  await server.query("insert into counter values (0)");
  await server.query("create table entry (n bigint not null, name text not null, epoch bigint not null)");
}

beforeEach(async () => {
  pair = await startPostgresPair(makeTables);
});
afterEach(async () => {
  await Promise.all(loops.splice(0).map((loop) => loop.end()));
  await pair?.end();
});

function start(library: LibraryName, name: string): Loop {
  const loop = new Loop({ library, url: pair.url, name });
  loops.push(loop);
  return loop;
}

/** Somebody of these goes on writing. */
async function writes(what: string, of: readonly Loop[]): Promise<void> {
  const count = (): number => of.reduce((sum, loop) => sum + loop.wrote.length, 0);
  const goal = count() + WRITES;
  const died = (): Loop | undefined => of.find((loop) => !loop.lives);
  await waitFor(`writes after ${what}`, () => count() >= goal || died() !== undefined, 90_000);
  expect(died()?.errors, `a process ended by itself after ${what}`).toBeUndefined();
}

async function leaderOf(of: readonly Loop[]): Promise<Loop> {
  let leader: Loop | undefined;
  await waitFor("a leader", () => {
    leader = of.find((loop) => loop.isLeading);
    return leader !== undefined;
  });
  return leader!;
}

test.each(LIBRARIES)("%s: the process lives and nothing is written twice", { timeout: 360_000 }, async (library) => {
  const both = [start(library, "a"), start(library, "b")];
  await writes("the start", both);
  for (const mode of ["fast", "immediate"] as const) {
    await pair.server.restart(mode);
    await writes(`a restart (${mode})`, both);
  }
  for (let round = 0; round < 5; round++) {
    await waitFor("sessions to end", async () => (await pair.server.query(END_SESSIONS, [APPLICATION])).length > 0);
    await writes("the end of its sessions", both);
  }
  const frozen = await leaderOf(both);
  frozen.kill("SIGSTOP");
  const other = both.find((loop) => loop !== frozen)!;
  await writes("a freeze of the leader", [other]);
  frozen.kill("SIGCONT");
  await waitFor("the frozen one to know", () => !frozen.isLeading);
  await writes("its thaw", both);
  await pair.failover();
  await writes("a failover to the standby", both);
  const killed = await leaderOf(both);
  killed.kill("SIGKILL");
  const last = both.find((loop) => loop !== killed)!;
  await writes("a kill of the leader", [last]);

  await last.end();
  const entries = await pair.server.query<{ n: string; name: string; epoch: string }>("select * from entry order by n");
  const names = entries.map(({ name }) => name);
  expect(names).toHaveLength(new Set(names).size);
  expect(entries.map(({ n }) => Number(n))).toEqual(entries.map((_, i) => i + 1));
  const epochs = entries.map(({ epoch }) => Number(epoch));
  expect(epochs).toEqual(epochs.toSorted((x, y) => x - y));
  expect(epochs[0]).toBeLessThan(PROMOTED_EPOCH_MIN);
  expect(new Set(epochs.filter((epoch) => epoch > PROMOTED_EPOCH_MIN)).size).toBeGreaterThan(1);
  expect(both.flatMap((loop) => loop.wrote).filter((name) => !names.includes(name))).toEqual([]);
});
