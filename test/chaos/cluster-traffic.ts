// The clients of `chaos cluster`, and the ledger that stands outside of the cluster: what was asked, and what was told.
//
// Two kinds of traffic, all along:
// - Registers: a few keys, fresh ones in each iteration, put, compared and read by several clients at several nodes at
//   once; the whole history goes to the linearizability checker.
// - Ledger writes: each its own key, written once. An acknowledged one must be there at the end, a refused one must not,
//   an unknown one may (trap 66). And the log's order is time's order: of two acknowledged writes, one of which ended
//   before the other started, the first has the lower index.

import { assertNever } from "../../src/core/kit/assert.ts";
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../src/core/kit/random.ts";
import { newKey } from "../../src/client/keys.ts";
import { keyEntry } from "../kv/api-keys.ts";
import { KvClient } from "../kv/client.ts";
import { type Ask, History } from "../linearizability/index.ts";

const CLIENTS = 3;
const REGISTER_LOOPS = 4;
const LEDGER_LOOPS = 4;
const REGISTERS = 4;
/** Together with what a write takes: a few hundred operations a second. */
const THINK_MS_MAX = 8;
const LEDGER_THINK_MS_MAX = 3;
const CALL_TIMEOUT_MS = 2_000;
const READ_BATCH = 500;
const READ_TIMEOUT_MS = 10_000;

export interface Ack {
  readonly startedMs: number;
  readonly endedMs: number;
  readonly index: number;
  readonly node: string;
}

export interface Audit {
  readonly lost: number;
  readonly findings: readonly string[];
}

type Fate = "acknowledged" | "refused" | "unknown";

export class Traffic {
  readonly history = new History();
  readonly counts = { acked: 0, unknown: 0, refused: 0, reads: 0 };
  readonly #clients: readonly KvClient[];
  readonly #ports: Readonly<Record<string, number>>;
  readonly #random: Random;
  readonly #acks: Ack[] = [];
  readonly #ledger = new Map<string, Fate>();
  readonly #waiting = new Set<{ sinceMs: number; settle: (ack: Ack) => void }>();
  readonly #loops: Promise<void>[];
  #iteration = 0;
  #next = 0;
  #isStopped = false;

  constructor(ports: Readonly<Record<string, number>>, random: Random) {
    this.#ports = ports;
    this.#random = random;
    this.#clients = Array.from({ length: CLIENTS }, () => new KvClient({ ports, timeoutMs: CALL_TIMEOUT_MS }));
    this.#loops = [
      ...Array.from({ length: REGISTER_LOOPS }, (_, at) => this.#registerLoop(`r${at}`, this.#clients[at % CLIENTS]!)),
      ...Array.from({ length: LEDGER_LOOPS }, (_, at) => this.#ledgerLoop(`l${at}`, this.#clients[at % CLIENTS]!)),
    ];
  }

  /** From now on other registers: a history that goes on for ever on one key could not be decided. */
  nextIteration(): void {
    this.#iteration++;
  }

  /** The first acknowledged write that was asked for after `sinceMs`. */
  nextAck(sinceMs: number, limitMs: number): Promise<Ack> {
    return new Promise((resolve, reject) => {
      const one = {
        sinceMs,
        settle: (ack: Ack) => {
          clearTimeout(timer);
          this.#waiting.delete(one);
          resolve(ack);
        },
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(one);
        reject(new Error(`no write was acknowledged for ${limitMs} ms`));
      }, limitMs);
      this.#waiting.add(one);
    });
  }

  /** A key of the API, part of the store from the moment in which this resolves; null where nobody knows. */
  async makeKey(): Promise<string | null> {
    const { secret, sha256 } = await newKey();
    const written = await this.#clients[0]!.put(keyEntry(sha256), "viewer");
    return written.outcome === "committed" ? secret : null;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#loops);
  }

  close(): void {
    this.#isStopped = true;
    for (const client of this.#clients) client.close();
  }

  // ---- the audit -----------------------------------------------------------------------------------

  /** Reads everything back. For after `stop`, when all faults are over. */
  async audit(): Promise<Audit> {
    const findings: string[] = [];
    const client = this.#clients[0]!;
    let lost = 0;
    const keys = [...this.#ledger.keys()];
    for (let from = 0; from < keys.length; from += READ_BATCH) {
      const batch = keys.slice(from, from + READ_BATCH);
      const found = await Promise.all(batch.map((key) => client.get(key, null, READ_TIMEOUT_MS)));
      for (const [at, key] of batch.entries()) {
        const got = found[at]!;
        if (got.outcome === "refused") throw new Error(`${key} could not be read back: ${got.code}`);
        const fate = this.#ledger.get(key)!;
        if (fate === "acknowledged" && got.value !== key) {
          lost++;
          findings.push(`${key} was acknowledged and is ${got.value ?? "not there"}`);
        }
        if (fate === "refused" && got.value !== null)
          findings.push(`${key} was refused for sure and is there (trap 66)`);
      }
    }
    await this.#readRegisters(client);
    findings.push(...this.#orderFindings());
    return { lost, findings };
  }

  /** The last word on each register goes into the history too. */
  async #readRegisters(client: KvClient): Promise<void> {
    const keys = Array.from({ length: (this.#iteration + 1) * REGISTERS }, (_, at) =>
      registerKey(Math.floor(at / REGISTERS), at % REGISTERS),
    );
    await Promise.all(
      keys.map(async (key) => {
        const id = this.history.begin("audit", key, { kind: "get" }, performance.now());
        const got = await client.get(key, null, READ_TIMEOUT_MS);
        if (got.outcome === "value") this.history.end(id, got.value, performance.now());
        else this.history.unknown(id);
      }),
    );
  }

  #orderFindings(): string[] {
    const byStart = this.#acks.toSorted((a, b) => a.startedMs - b.startedMs);
    const byEnd = this.#acks.toSorted((a, b) => a.endedMs - b.endedMs);
    const findings: string[] = [];
    let ended = 0;
    let highest = 0;
    for (const { startedMs, index } of byStart) {
      for (; ended < byEnd.length && byEnd[ended]!.endedMs < startedMs; ended++) {
        highest = Math.max(highest, byEnd[ended]!.index);
      }
      if (index <= highest)
        findings.push(`a write has index ${index}, behind ${highest}, which had ended before it began`);
    }
    return findings;
  }

  // ---- clients -------------------------------------------------------------------------------------

  async #ledgerLoop(name: string, client: KvClient): Promise<void> {
    const random = this.#random.fork(name);
    while (!this.#isStopped) {
      const key = `l/${this.#next++}`;
      const startedMs = performance.now();
      // Until it is told otherwise it may be there or not.
      this.#ledger.set(key, "unknown");
      const written = await client.put(key, key);
      if (written.outcome === "committed") {
        this.#ledger.set(key, "acknowledged");
        this.#acked({ startedMs, endedMs: performance.now(), index: written.index, node: written.node });
      } else if (written.outcome === "refused") {
        this.#ledger.set(key, "refused");
        this.counts.refused++;
      } else {
        this.counts.unknown++;
      }
      await sleep(random.between(0, LEDGER_THINK_MS_MAX));
    }
  }

  async #registerLoop(name: string, client: KvClient): Promise<void> {
    const random = this.#random.fork(name);
    const known = new Map<string, string>();
    while (!this.#isStopped) {
      const key = registerKey(this.#iteration, random.below(REGISTERS));
      const value = `${name}.${this.#next++}`;
      const draw = random.next();
      const ask: Ask =
        draw < 0.4
          ? { kind: "get" }
          : draw < 0.7
            ? { kind: "put", value }
            : { kind: "cas", expected: known.get(key) ?? "nothing", value };
      const seen = await this.#askRegister(name, client, key, ask, random);
      if (seen !== null) known.set(key, seen);
      await sleep(random.between(0, THINK_MS_MAX));
    }
  }

  /** What the key had for sure, for a cas that may succeed. */
  async #askRegister(name: string, client: KvClient, key: string, ask: Ask, random: Random): Promise<string | null> {
    const startedMs = performance.now();
    const id = this.history.begin(name, key, ask, startedMs);
    if (ask.kind === "get") {
      const got = await client.get(key, random.chance(0.5) ? random.pick(Object.keys(this.#ports)) : null);
      if (got.outcome === "refused") this.history.unknown(id);
      else this.history.end(id, got.value, performance.now());
      this.counts.reads += got.outcome === "value" ? 1 : 0;
      return got.outcome === "value" ? got.value : null;
    }
    const written =
      ask.kind === "put" ? await client.put(key, ask.value) : await client.cas(key, ask.expected, ask.value);
    const endedMs = performance.now();
    switch (written.outcome) {
      case "committed":
        this.history.end(id, written.done, endedMs);
        this.#acked({ startedMs, endedMs, index: written.index, node: written.node });
        return written.done ? ask.value : null;
      case "refused":
        this.history.refused(id);
        this.counts.refused++;
        return null;
      case "unknown":
        this.history.unknown(id);
        this.counts.unknown++;
        return null;
      default:
        return assertNever(written, "askRegister");
    }
  }

  #acked(ack: Ack): void {
    this.counts.acked++;
    this.#acks.push(ack);
    for (const one of this.#waiting) if (ack.startedMs >= one.sinceMs) one.settle(ack);
  }
}

function registerKey(iteration: number, at: number): string {
  return `r/${iteration}/${at}`;
}
