// The guard process, driven over its pipe as `tenure run` drives it.

import { type ChildProcess, spawn } from "node:child_process";
import type { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { encode, type FromGuard, Lines, moment, type ToGuard } from "../../src/cli/run/guard-protocol.ts";
import type { GuardPlan, Moment } from "../../src/core/supervise/guard.ts";
import { waitFor } from "../servers/index.ts";
import { type Command, livingIn } from "./test-commands.ts";

const GUARD_FILE = fileURLToPath(new URL("../../src/cli/run/guard.ts", import.meta.url));

export class TestGuard {
  readonly messages: FromGuard[] = [];
  readonly process: ChildProcess;
  readonly #pipe: Duplex;
  exited = false;

  constructor() {
    this.process = spawn(process.execPath, [GUARD_FILE, "test"], {
      stdio: ["ignore", "inherit", "inherit", "pipe"],
      detached: true,
    });
    this.#pipe = this.process.stdio[3] as Duplex;
    this.#pipe.setEncoding("utf8");
    const lines = new Lines<FromGuard>();
    this.#pipe.on("data", (chunk: string) => this.messages.push(...lines.take(chunk)));
    this.#pipe.on("error", () => undefined);
    this.process.once("close", () => (this.exited = true));
    onTestFinished(() => {
      this.process.kill("SIGKILL");
      if (this.group !== undefined && livingIn(this.group).length > 0) process.kill(-this.group, "SIGKILL");
    });
  }

  get group(): number | undefined {
    return this.message("started")?.pid;
  }

  send(message: ToGuard): void {
    this.#pipe.write(encode(message));
  }

  start([command, ...args]: Command, deadline: Moment, plan: GuardPlan): void {
    const environment = { PATH: process.env["PATH"] ?? "" };
    this.send({ kind: "start", deadline, plan, command, args, environment });
  }

  /** As a supervisor that was killed. */
  hangUp(): void {
    this.#pipe.destroy();
  }

  message<Kind extends FromGuard["kind"]>(kind: Kind): (FromGuard & { kind: Kind }) | undefined {
    return this.messages.find((one): one is FromGuard & { kind: Kind } => one.kind === kind);
  }

  async heard<Kind extends FromGuard["kind"]>(kind: Kind): Promise<FromGuard & { kind: Kind }> {
    await waitFor(`the guard to say ${kind}`, () => this.message(kind) !== undefined);
    return this.message(kind)!;
  }
}

export function inMs(ms: number): Moment {
  const now = moment();
  return { monotonicMs: now.monotonicMs + ms, wallMs: now.wallMs + ms };
}
