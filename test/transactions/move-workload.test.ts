// examples/move-workload.ts on three real islands: the workload moves to and fro while servers and instances are killed. In the end it is in one place,
// and over both islands each step has exactly one job.

import { type ChildProcess, spawn } from "node:child_process";
import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { certificateFetch } from "../../src/cli/connection/transport.ts";
import { type Client, createClient } from "../../src/entry/client.ts";
import { ISLANDS_MS_MAX, TestIslands } from "../coordinators/test-islands.ts";
import { COMPILE_CACHE } from "../servers/compile-cache.ts";
import { waitFor } from "../servers/index.ts";

const STORY_MS_MAX = ISLANDS_MS_MAX * 6;
const PLACES = ["i1", "i2"] as const;
const ISLANDS = [...PLACES, "i3"] as const;
type Place = (typeof PLACES)[number];
/** Each has as many instances as this. */
const INSTANCES = 2;
const SCOPE = "orders";
const CURSOR = "orders/cursor";

/** One instance of the example, started anew wherever it dies. */
class Mover {
  readonly place: Place;
  /** Steps and moves that it has reported. */
  steps = 0;
  moves = 0;
  /** Its last line was a step: it has the workload, as far as it knows. */
  works = false;
  said = "";
  #child: ChildProcess | null = null;
  #isOver = false;

  constructor(place: Place) {
    this.place = place;
  }

  start(): void {
    const urlOf = (id: string): string => islands.node(id).url;
    const env = {
      ...process.env,
      HERE: urlOf(this.place),
      THERE: urlOf(PLACES.find((other) => other !== this.place)!),
      CERTS: join(islands.directory, "people"),
      STEP_MS: "50",
      NODE_COMPILE_CACHE: COMPILE_CACHE,
    };
    const child = spawn(
      process.execPath,
      ["--conditions=tenure-source", "--no-warnings", "examples/move-workload.ts"],
      {
        env,
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    this.#child = child;
    child.stdout.setEncoding("utf8").on("data", (text: string) => this.#heard(text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (this.said = `${this.said}${text}`.slice(-4_000)));
    child.once("close", () => {
      this.works = false;
      if (!this.#isOver) this.start();
    });
  }

  signal(signal: "SIGUSR2" | "SIGKILL"): void {
    this.#child?.kill(signal);
  }

  end(): void {
    this.#isOver = true;
    this.#child?.kill("SIGKILL");
  }

  #heard(text: string): void {
    this.said = `${this.said}${text}`.slice(-4_000);
    const steps = text.match(/"step":/g)?.length ?? 0;
    const moves = text.match(/"moved":/g)?.length ?? 0;
    this.steps += steps;
    this.moves += moves;
    if (steps + moves > 0) this.works = moves === 0;
  }
}

let islands: TestIslands;
let movers: readonly Mover[] = [];

beforeAll(async () => {
  islands = await TestIslands.start(...ISLANDS);
  for (const kind of ["--sdk mover", "--tc mover", "--operator ada"]) {
    const { code, stderr } = await islands.run(`tenure cert issue --dir ca --out people ${kind}`);
    expect(code, stderr).toBe(0);
  }
  copyFileSync(join(islands.directory, "ca", "ca.crt"), join(islands.directory, "people", "ca.crt"));
}, STORY_MS_MAX);
afterAll(async () => {
  for (const mover of movers) mover.end();
  await islands?.end();
});

function clientOf(place: Place): Client {
  const text = (name: string): string => readFileSync(join(islands.directory, "people", name), "utf8");
  const tls = { ca: text("ca.crt"), cert: text("operator-ada.crt"), key: text("operator-ada.key") };
  return createClient({ urls: [islands.node(place).url], fetch: certificateFetch(tls), timeoutMs: 30_000 });
}

const sum = (of: (mover: Mover) => number): number => movers.reduce((all, mover) => all + of(mover), 0);
const told = (): string => movers.map(({ place, said }) => `${place}: ${said}`).join("\n");

/** Whoever works moves away; as often as it takes until one has. */
async function oneMove(): Promise<void> {
  const before = sum(({ moves }) => moves);
  await waitFor(
    "a move",
    async () => {
      for (const mover of movers) if (mover.works) mover.signal("SIGUSR2");
      return sum(({ moves }) => moves) > before;
    },
    ISLANDS_MS_MAX,
  );
}

async function moreSteps(): Promise<void> {
  const before = sum(({ steps }) => steps);
  await waitFor("more steps", async () => sum(({ steps }) => steps) >= before + 5, ISLANDS_MS_MAX);
}

it(
  "a led workload moves with its cursor and its queue while servers and instances are killed: it is at one place, and each step has one job",
  async ({ onTestFailed }) => {
    onTestFailed(() => console.log(told()));
    const clients = PLACES.map((place) => clientOf(place));
    await waitFor(
      "the first value",
      () =>
        clients[0]!.values.put(CURSOR, 0).then(
          () => true,
          () => false,
        ),
      ISLANDS_MS_MAX,
    );
    movers = PLACES.flatMap((place) => Array.from({ length: INSTANCES }, () => new Mover(place)));
    for (const mover of movers) mover.start();
    await moreSteps();
    await oneMove();

    // Each island's server, the coordinators' leader among them, and the instance that works; moves go on meanwhile.
    for (const island of ISLANDS) {
      const node = islands.node(island);
      for (const mover of movers) if (mover.works) mover.signal("SIGUSR2");
      await node.kill9();
      for (const mover of movers) if (mover.works) mover.signal(island === "i3" ? "SIGKILL" : "SIGUSR2");
      node.start();
      await moreSteps();
      await oneMove();
    }
    await moreSteps();
    for (const mover of movers) mover.end();
    await atOnePlaceWithEachStepOnce(clients);
  },
  STORY_MS_MAX,
);

async function atOnePlaceWithEachStepOnce(clients: readonly Client[]): Promise<void> {
  // What is under way when the last instance dies is decided without it.
  await waitFor(
    "nothing in doubt",
    async () => {
      for (const client of clients) for await (const _ of client.transactions.list({ inDoubt: true })) return false;
      return true;
    },
    ISLANDS_MS_MAX,
  );
  const cursors = await Promise.all(clients.map((client) => client.values.get(CURSOR)));
  const [cursor, ...others] = cursors.filter((one) => one !== null);
  expect(others, "it is at two places").toEqual([]);
  const steps: number[] = [];
  for (const client of clients)
    for await (const job of client.jobs({ consistency: "linearizable" })) steps.push(Number(job.labels["step"]));
  const last = Number(cursor!.value);
  expect(steps.toSorted((a, b) => a - b)).toEqual(Array.from({ length: last }, (_, at) => at + 1));
  expect(last).toBeGreaterThan(20);
  const away = cursors[0] === null ? 0 : 1;
  await waitFor(
    "the scope is led at no other place",
    async () => (await clients[away]!.scopes.get(SCOPE)).holder === null,
    ISLANDS_MS_MAX,
  );
}
