// Clients that talk to any Maelstrom node under our own router, and the checker over everything they were answered.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect } from "vitest";
import { assertNever } from "../../src/core/kit/assert.ts";
import type { Random } from "../../src/core/kit/random.ts";
import { type Ask, checkHistory, describeOperation, History } from "../linearizability/index.ts";
import { type Body, ERROR, isDefinite } from "./protocol.ts";
import { Router, type RouterOptions } from "./router.ts";

const CLIENT_TIMEOUT_MS = 1_500;

const undo: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).toReversed()) await step();
});

export async function startRouter(options: Omit<RouterOptions, "dataDir">): Promise<Router> {
  const dataDir = mkdtempSync(join(tmpdir(), "tenure-maelstrom-"));
  undo.push(() => rmSync(dataDir, { recursive: true, force: true }));
  const router = new Router({ ...options, dataDir });
  undo.push(() => router.end());
  await router.start();
  return router;
}

/** Clients that ask random nodes, all along, until they are stopped. */
export class Load {
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

export function expectLinearizable(load: Load): void {
  const verdict = checkHistory(load.history.operations());
  const told = verdict.kind === "not-linearizable" ? verdict.window.map(describeOperation).join("\n") : "";
  expect(verdict.kind, told).toBe("linearizable");
}
