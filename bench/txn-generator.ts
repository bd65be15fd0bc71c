// The load generator of `txn`, as the benchmark sees it: one question at a time, one answer to each. It ends with this process.

import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Opened, SideName } from "./txn-sides.ts";

const PROGRAM = fileURLToPath(new URL("./txn-process.ts", import.meta.url));

export type TxnAsk =
  | { readonly ask: "open"; readonly side: Opened; readonly clients: number }
  | { readonly ask: "window"; readonly side: SideName; readonly ms: number }
  | { readonly ask: "close" };

export interface TxnWindow {
  readonly perS: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Committed, and not everywhere when the client heard of it. */
  readonly pending: number;
}

export type TxnTold = { readonly window: TxnWindow | null } | { readonly failed: string };

export class TxnGenerator {
  readonly #child: ChildProcess;
  #waiting: { readonly settle: (window: TxnWindow | null) => void; readonly fail: (error: Error) => void } | null =
    null;

  constructor() {
    this.#child = spawn(process.execPath, ["--no-warnings", PROGRAM], {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    process.once("exit", this.#kill);
    this.#child.on("message", (told: TxnTold) => {
      if ("failed" in told) this.#take()?.fail(new Error(told.failed));
      else this.#take()?.settle(told.window);
    });
    this.#child.once("exit", (code, signal) =>
      this.#take()?.fail(new Error(`the load generator ended: ${signal ?? code}`)),
    );
  }

  async open(side: Opened, clients: number): Promise<void> {
    await this.#ask({ ask: "open", side, clients });
  }

  async window(side: SideName, ms: number): Promise<TxnWindow> {
    return (await this.#ask({ ask: "window", side, ms }))!;
  }

  /** All that is open. */
  async close(): Promise<void> {
    await this.#ask({ ask: "close" });
  }

  end(): void {
    process.removeListener("exit", this.#kill);
    this.#kill();
  }

  readonly #kill = (): void => {
    this.#child.kill("SIGKILL");
  };

  #ask(ask: TxnAsk): Promise<TxnWindow | null> {
    if (this.#waiting !== null) throw new Error(`${ask.ask} was asked before the last question was answered`);
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) throw new Error("the load generator is gone");
    return new Promise((settle, fail) => {
      this.#waiting = { settle, fail };
      this.#child.send(ask);
    });
  }

  #take(): { settle: (window: TxnWindow | null) => void; fail: (error: Error) => void } | null {
    const waiting = this.#waiting;
    this.#waiting = null;
    return waiting;
  }
}
