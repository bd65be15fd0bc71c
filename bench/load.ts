// The client process, as the benchmark sees it: one question at a time, one answer to each.

import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Acks, Ask, Awaited, Told, WindowResult } from "./load-messages.ts";

const PROGRAM = fileURLToPath(new URL("./load-process.ts", import.meta.url));

export class Load {
  readonly #child: ChildProcess;
  #waiting: { readonly settle: (told: Told) => void; readonly fail: (error: Error) => void } | null = null;

  constructor(nodeFlags: readonly string[] = []) {
    this.#child = spawn(process.execPath, ["--no-warnings", ...nodeFlags, PROGRAM], {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    process.once("exit", this.#kill);
    this.#child.on("message", (told: Told) => this.#take()?.settle(told));
    this.#child.once("exit", (code, signal) =>
      this.#take()?.fail(new Error(`the client process ended: ${signal ?? code}`)),
    );
  }

  async open(question: Omit<Extract<Ask, { ask: "open" }>, "ask">): Promise<void> {
    await this.#ask({ ask: "open", ...question });
  }

  async window(question: Omit<Extract<Ask, { ask: "window" }>, "ask">): Promise<WindowResult> {
    return (await this.#ask({ ask: "window", ...question })).window!;
  }

  async begin(question: Omit<Extract<Ask, { ask: "begin" }>, "ask">): Promise<void> {
    await this.#ask({ ask: "begin", ...question });
  }

  async halt(): Promise<void> {
    await this.#ask({ ask: "halt" });
  }

  async watch(victim: string): Promise<void> {
    await this.#ask({ ask: "watch", victim });
  }

  async awaited(): Promise<Awaited> {
    return (await this.#ask({ ask: "awaited" })).awaited!;
  }

  async record(): Promise<void> {
    await this.#ask({ ask: "record" });
  }

  async acks(): Promise<Acks> {
    return (await this.#ask({ ask: "acks" })).acks!;
  }

  end(): void {
    process.removeListener("exit", this.#kill);
    this.#kill();
  }

  readonly #kill = (): void => {
    this.#child.kill("SIGKILL");
  };

  #ask(ask: Ask): Promise<Told> {
    if (this.#waiting !== null) throw new Error(`${ask.ask} was asked before the last question was answered`);
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) throw new Error("the client process is gone");
    return new Promise((settle, fail) => {
      this.#waiting = { settle, fail };
      this.#child.send(ask);
    });
  }

  #take(): { settle: (told: Told) => void; fail: (error: Error) => void } | null {
    const waiting = this.#waiting;
    this.#waiting = null;
    return waiting;
  }
}
