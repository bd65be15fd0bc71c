// The controls: the same counter and the same workers, with a lock and without a fence. They must lose updates under the
// faults that Tenure survives, or else the harness could not see a lost update at all.

import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { etcdPath, waitFor } from "../servers/index.ts";
import { findProgram } from "../servers/server-process.ts";
import { Crew } from "./crew.ts";
import { etcdStage } from "./etcd-stage.ts";
import { Ledger } from "./ledger.ts";
import { CONFIG_VARIABLE, type Report, type WorkerConfig } from "./messages.ts";
import { postgresStage } from "./postgres-stage.ts";
import type { StageOptions } from "./stage.ts";

export interface ControlOptions {
  readonly stage: StageOptions & { readonly timing: NonNullable<StageOptions["timing"]> };
  readonly signal: AbortSignal;
  readonly log: (line: string) => void;
}

export interface ControlResult {
  readonly increments: number;
  readonly lost_updates: number;
}

const ROUNDS_MIN = 2;
const ROUNDS_MAX = 12;
const TAKEOVER_MS_MAX = 30_000;
const STEADY_ACKS = 24;
/** How long two holders write side by side. */
const SIDE_BY_SIDE_MS = 300;
const TTL_SECONDS = 2;

/** Two workers with `pg_advisory_lock`. Stopped for longer than the session's timeout; then the session terminated. */
export async function bareLockControl({ stage: options, signal, log }: ControlOptions): Promise<ControlResult> {
  const stage = await postgresStage(options, "bare-lock");
  const crew = new Crew((place, name) => stage.configure(place, name), signal);
  const sum = { increments: 0, lost_updates: 0 };
  try {
    await stage.proxies.open(2);
    for (let round = 0; round < ROUNDS_MAX && !signal.aborted; round++) {
      if (round >= ROUNDS_MIN && sum.lost_updates > 0) break;
      crew.ledger = new Ledger();
      crew.acksInTerm = 0;
      for (const place of [0, 1]) crew.start(place);
      await waitFor(
        "a steady holder",
        async () => crew.acksInTerm >= STEADY_ACKS && (await stage.hasWaiters(1)),
        20_000,
      );
      const { epoch, place } = crew.last!;
      if (round % 2 === 0) crew.at(place).stop();
      else await stage.strike("terminate");
      await crew.nextAck(epoch, TAKEOVER_MS_MAX);
      if (round % 2 === 0) crew.at(place).resume();
      await sleep(SIDE_BY_SIDE_MS);
      await crew.endAll();
      const verdict = crew.ledger.compare(await stage.read());
      await stage.clear();
      sum.increments += verdict.increments;
      sum.lost_updates += verdict.lostUpdates;
      const fault = round % 2 === 0 ? "stop" : "terminate";
      log(`      control bare lock, ${fault}: ${verdict.lostUpdates} of ${verdict.increments} updates lost`);
    }
    return sum;
  } finally {
    crew.killAll();
    await Promise.all(crew.members.map((member) => member.gone));
    await stage.end();
  }
}

/** Null where etcd or etcdctl is not installed. */
export async function etcdctlControl({ stage: options, signal, log }: ControlOptions): Promise<ControlResult | null> {
  const program = findProgram("etcdctl");
  if (program === undefined || etcdPath() === undefined) return null;
  const stage = await etcdStage(options, "etcdctl");
  const holders: Holder[] = [];
  const kill = (): void => holders.forEach((holder) => holder.kill());
  signal.addEventListener("abort", kill, { once: true });
  const ledger = new Ledger();
  try {
    await stage.proxies.open(2);
    for (const place of [0, 1]) {
      holders.push(new Holder(program, stage.endpoint, stage.configure(place, `w${place}.1`), ledger));
    }
    const steady = (): Holder | undefined => holders.find((holder) => holder.acks >= STEADY_ACKS);
    await waitFor("the holder of etcdctl lock to write", () => steady() !== undefined || signal.aborted, 20_000);
    const first = steady();
    const second = holders.find((holder) => holder !== first);
    // The lock goes with the lease, and the child knows nothing of either.
    first?.stop();
    await waitFor("the next holder to write", () => (second?.acks ?? 0) > 0 || signal.aborted, TAKEOVER_MS_MAX);
    await sleep(SIDE_BY_SIDE_MS);
    for (const holder of holders) await holder.end();
    const { increments, lostUpdates } = ledger.compare(await stage.read());
    log(`      control etcdctl lock, stop: ${lostUpdates} of ${increments} updates lost`);
    return { increments, lost_updates: lostUpdates };
  } finally {
    signal.removeEventListener("abort", kill);
    for (const holder of holders) await holder.end();
    await stage.end();
  }
}

const holding = new Set<Holder>();
process.on("exit", () => {
  for (const holder of holding) holder.kill();
});

/** `etcdctl lock` and its child, which reports on standard output. Both are one process group. */
class Holder {
  acks = 0;
  readonly #child: ChildProcess;
  readonly #gone: Promise<void>;

  constructor(etcdctl: string, endpoint: string, config: WorkerConfig, ledger: Ledger) {
    const worker = fileURLToPath(new URL("worker.ts", import.meta.url));
    const command = [process.execPath, "--no-warnings", worker];
    this.#child = spawn(
      etcdctl,
      [`--endpoints=${endpoint}`, "lock", `--ttl=${TTL_SECONDS}`, "chaos", "--", ...command],
      {
        detached: true,
        env: { PATH: process.env["PATH"], ETCDCTL_API: "3", [CONFIG_VARIABLE]: JSON.stringify(config) },
        stdio: ["ignore", "pipe", "ignore"],
      },
    );
    holding.add(this);
    let rest = "";
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (!line.startsWith("{")) continue;
        if (ledger.note(config.name, JSON.parse(line) as Report) !== undefined) this.acks++;
      }
    });
    this.#gone = new Promise((resolve) => {
      this.#child.once("error", () => resolve());
      // The stream ends when the worker, which inherited it, has ended too.
      this.#child.once("close", () => resolve());
    });
  }

  /** Only etcdctl: its child runs on. */
  stop(): void {
    this.#child.kill("SIGSTOP");
  }

  kill(): void {
    if (this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, "SIGKILL");
    } catch {
      // The whole group has ended.
    }
  }

  async end(): Promise<void> {
    this.kill();
    await this.#gone;
    holding.delete(this);
  }
}
