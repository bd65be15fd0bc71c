// A load generator, as the benchmark sees it: one question at a time, one answer to each. It ends with this process.

import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { FlowOptions, FlowResult } from "./jobs-flow.ts";

const PROGRAM = fileURLToPath(new URL("./generator-process.ts", import.meta.url));

export type SideName = "raw" | "sdk" | "graphile" | "pgboss";

export type GeneratorAsk =
  /** Of Tenure, raw: the leader's URL alone; of a peer: its database's. */
  | { readonly ask: "open"; readonly side: SideName; readonly urls: readonly string[]; readonly key: string }
  | { readonly ask: "full-rate"; readonly options: FlowOptions }
  | { readonly ask: "one-by-one"; readonly samples: number; readonly warm: number }
  /** Jobs that nobody works on. */
  | { readonly ask: "submit"; readonly jobs: number; readonly batch: number };

export class Generator {
  readonly #child: ChildProcess;
  #waiting: { readonly settle: (told: object) => void; readonly fail: (error: Error) => void } | null = null;

  constructor() {
    this.#child = spawn(process.execPath, ["--no-warnings", PROGRAM], {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    process.once("exit", this.#kill);
    this.#child.on("message", (told: { readonly failed?: string | undefined }) => {
      if (told.failed === undefined) this.#take()?.settle(told);
      else this.#take()?.fail(new Error(told.failed));
    });
    this.#child.once("exit", (code, signal) =>
      this.#take()?.fail(new Error(`a load generator ended: ${signal ?? code}`)),
    );
  }

  async open(side: SideName, urls: readonly string[], key = ""): Promise<void> {
    await this.#ask({ ask: "open", side, urls, key });
  }

  async fullRate(options: FlowOptions): Promise<FlowResult> {
    return (await this.#ask({ ask: "full-rate", options })) as FlowResult;
  }

  async oneByOne(samples: number, warm: number): Promise<FlowResult> {
    return (await this.#ask({ ask: "one-by-one", samples, warm })) as FlowResult;
  }

  async submit(jobs: number, batch: number): Promise<void> {
    await this.#ask({ ask: "submit", jobs, batch });
  }

  end(): void {
    process.removeListener("exit", this.#kill);
    this.#kill();
  }

  readonly #kill = (): void => {
    this.#child.kill("SIGKILL");
  };

  #ask(ask: GeneratorAsk): Promise<object> {
    if (this.#waiting !== null) throw new Error(`${ask.ask} was asked before the last question was answered`);
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) throw new Error("the load generator is gone");
    return new Promise((settle, fail) => {
      this.#waiting = { settle, fail };
      this.#child.send(ask);
    });
  }

  #take(): { settle: (told: object) => void; fail: (error: Error) => void } | null {
    const waiting = this.#waiting;
    this.#waiting = null;
    return waiting;
  }
}
