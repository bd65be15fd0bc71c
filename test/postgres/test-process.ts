// Instances of a service as real processes: started, killed, frozen and continued by their id.

import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { waitFor } from "../servers/index.ts";
import type { Task } from "./test-instance.ts";

export type Said = Readonly<Record<string, unknown>> & { readonly said: string };

export class Instance {
  readonly said: Said[] = [];
  /** When each line of `said` arrived. */
  readonly atMs: number[] = [];
  readonly #child: ChildProcess;
  #errors = "";
  #exited = false;

  constructor(task: Task) {
    const script = fileURLToPath(new URL("test-instance.ts", import.meta.url));
    this.#child = spawn(process.execPath, [script, JSON.stringify(task)], { stdio: ["pipe", "pipe", "pipe"] });
    let rest = "";
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        this.said.push(JSON.parse(line) as Said);
        this.atMs.push(performance.now());
      }
    });
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#errors += text;
    });
    this.#child.once("exit", () => {
      this.#exited = true;
    });
  }

  /** The epochs that it has led, in order. */
  get epochs(): number[] {
    return this.said.filter((one) => one["kind"] === "leading").map((one) => Number(one["epoch"]));
  }

  has(what: Readonly<Record<string, unknown>>): boolean {
    return this.said.some((one) => matches(one, what));
  }

  /** When it said so first, on this process's monotonic clock. */
  async heard(what: Readonly<Record<string, unknown>>): Promise<number> {
    await this.#until(JSON.stringify(what), () => this.has(what));
    return this.atMs[this.said.findIndex((one) => matches(one, what))] ?? Number.NaN;
  }

  async #until(what: string, isSaid: () => boolean): Promise<void> {
    try {
      await waitFor(`an instance to say ${what}`, () => this.#exited || isSaid());
      if (!isSaid()) throw new Error(`the instance is gone before it said ${what}`);
    } catch (error) {
      throw new Error(`it said ${JSON.stringify(this.said)} ${this.#errors}`, { cause: error });
    }
  }

  async heardTwice(what: Readonly<Record<string, unknown>>): Promise<void> {
    const count = (): number => this.said.filter((one) => matches(one, what)).length;
    await this.#until(`${JSON.stringify(what)} a second time`, () => count() > 1);
  }

  freeze(): void {
    this.#child.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child.kill("SIGCONT");
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  /** Lets a paused transaction go on. */
  proceed(): void {
    this.#child.stdin?.write("go\n");
  }

  async end(): Promise<void> {
    if (this.#exited) return;
    this.kill();
    await waitFor("an instance to exit", () => this.#exited);
  }
}

function matches(one: Said, what: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(what).every(([name, value]) => one[name] === value);
}
