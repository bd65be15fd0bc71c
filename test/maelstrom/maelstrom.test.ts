// The Maelstrom node under our own router: real processes, lost and late messages, partitions and kill -9, clients that
// talk to any node, and the checker over everything they were told.

import { assertNever } from "../../src/core/kit/assert.ts";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { seededRandom, type Random } from "../../src/core/kit/random.ts";
import { type Ask, checkHistory, describeOperation, History } from "../linearizability/index.ts";
import { type Body, ERROR, isDefinite } from "./protocol.ts";
import { Router, type RouterOptions } from "./router.ts";

const CLIENT_TIMEOUT_MS = 1_500;

const undo: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).toReversed()) await step();
});

async function startRouter(options: Omit<RouterOptions, "dataDir">): Promise<Router> {
  const dataDir = mkdtempSync(join(tmpdir(), "tenure-maelstrom-"));
  undo.push(() => rmSync(dataDir, { recursive: true, force: true }));
  const router = new Router({ ...options, dataDir });
  undo.push(() => router.end());
  await router.start();
  return router;
}

/** Clients that ask random nodes, all along, until they are stopped. */
class Load {
  readonly history = new History();
  readonly counts = { done: 0, unknown: 0, refused: 0 };
  readonly #router: Router;
  readonly #random: Random;
  readonly #keys: number;
  #isStopped = false;
  readonly #clients: Promise<void>[];
  #next = 0;

  constructor(router: Router, random: Random, clients: number, keys: number) {
    this.#router = router;
    this.#random = random;
    this.#keys = keys;
    this.#clients = Array.from({ length: clients }, (_, at) => this.#run(`c${at}`));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#clients);
  }

  async #run(client: string): Promise<void> {
    const random = this.#random.fork(client);
    let known = "0";
    for (let n = 0; !this.#isStopped; n++) {
      // A refused client that asks again at once would do nothing else.
      await sleep(random.between(0, 15));
      const key = `k${random.below(this.#keys)}`;
      const draw = random.next();
      const value = String(this.#next++);
      const ask: Ask =
        draw < 0.4 ? { kind: "get" } : draw < 0.7 ? { kind: "put", value } : { kind: "cas", expected: known, value };
      const seen = await this.#ask(client, random.pick(this.#router.nodeIds), key, ask);
      if (seen !== null) known = seen;
    }
  }

  /** The value that the key certainly had. */
  async #ask(client: string, node: string, key: string, ask: Ask): Promise<string | null> {
    const id = this.history.begin(client, key, ask, performance.now());
    const answer = await this.#router.ask(client, node, requestOf(key, ask), CLIENT_TIMEOUT_MS);
    const atMs = performance.now();
    if (answer === null || (answer.type === "error" && !isDefinite(Number(answer["code"])))) {
      this.counts.unknown++;
      this.history.unknown(id);
      return null;
    }
    const code = answer.type === "error" ? Number(answer["code"]) : null;
    const isResult = code === null || code === ERROR.keyDoesNotExist || code === ERROR.preconditionFailed;
    if (!isResult) {
      this.counts.refused++;
      this.history.refused(id);
      return null;
    }
    this.counts.done++;
    if (ask.kind === "get") {
      const value = code === null ? String(answer["value"]) : null;
      this.history.end(id, value, atMs);
      return value;
    }
    this.history.end(id, ask.kind === "cas" ? code === null : null, atMs);
    return ask.value;
  }
}

function requestOf(key: string, ask: Ask): Body {
  switch (ask.kind) {
    case "get":
      return { type: "read", key };
    case "put":
      return { type: "write", key, value: ask.value };
    case "cas":
      return { type: "cas", key, from: ask.expected, to: ask.value };
    default:
      return assertNever(ask, "requestOf");
  }
}

function expectLinearizable(load: Load): void {
  const verdict = checkHistory(load.history.operations());
  const told = verdict.kind === "not-linearizable" ? verdict.window.map(describeOperation).join("\n") : "";
  expect(verdict.kind, told).toBe("linearizable");
}

describe("the Maelstrom node", () => {
  test("speaks lin-kv: init, write, read, cas, and errors with Maelstrom's codes, on every node alike", async () => {
    const router = await startRouter({ nodes: 3, random: seededRandom(1), delayMsMax: 0, loss: 0 });
    const ask = async (node: string, body: Body): Promise<Body | null> => {
      for (;;) {
        const answer = await router.ask("c1", node, body, 5_000);
        if (answer?.["code"] !== ERROR.temporarilyUnavailable) return answer;
        await sleep(20);
      }
    };
    for (const [at, node] of router.nodeIds.entries()) {
      const key = ["a key that is not text", at];
      expect(await ask(node, { type: "read", key })).toMatchObject({ type: "error", code: ERROR.keyDoesNotExist });
      expect(await ask(node, { type: "cas", key, from: 1, to: 2 })).toMatchObject({ code: ERROR.keyDoesNotExist });
      expect(await ask(node, { type: "write", key, value: { n: 1 } })).toMatchObject({ type: "write_ok" });
      expect(await ask(node, { type: "cas", key, from: 7, to: 2 })).toMatchObject({ code: ERROR.preconditionFailed });
      expect(await ask(node, { type: "cas", key, from: { n: 1 }, to: 2 })).toMatchObject({ type: "cas_ok" });
      for (const other of router.nodeIds) {
        expect(await ask(other, { type: "read", key })).toMatchObject({ type: "read_ok", value: 2 });
      }
      expect(await ask(node, { type: "sing" })).toMatchObject({ type: "error", code: ERROR.notSupported });
    }
  });

  test("trap 66: a node that is cut off from its leader answers with an indefinite error, or a definite one that is true", async () => {
    const router = await startRouter({ nodes: 3, random: seededRandom(2), delayMsMax: 0, loss: 0 });
    const load = new Load(router, seededRandom(3), 4, 3);
    await sleep(800);
    const [first, ...others] = router.nodeIds;
    router.partition([first!], others);
    await sleep(1_500);
    router.heal();
    await sleep(600);
    await load.stop();
    expect(load.counts.unknown + load.counts.refused).toBeGreaterThan(0);
    expectLinearizable(load);
  });

  test("stays linearizable on five nodes with lost and late messages, partitions and kill -9", async () => {
    const random = seededRandom(7);
    const router = await startRouter({ nodes: 5, random, delayMsMax: 4, loss: 0.01 });
    const load = new Load(router, random.fork("load"), 8, 6);
    await sleep(800);
    for (let round = 0; round < 3; round++) {
      const shuffled = router.nodeIds.toSorted(() => random.next() - 0.5);
      router.partition(shuffled.slice(0, 2), shuffled.slice(2));
      await sleep(700);
      router.heal();
      const victim = random.pick(router.nodeIds);
      await router.killNode(victim);
      await sleep(500);
      await router.startNode(victim);
      await sleep(400);
    }
    await load.stop();
    expect(router.errors).toEqual([]);
    expect(router.counts).toMatchObject({ kills: 3 });
    expect(router.counts.cut).toBeGreaterThan(0);
    expect(router.counts.lost).toBeGreaterThan(0);
    expect(load.counts.done).toBeGreaterThan(300);
    expectLinearizable(load);
  });
});
