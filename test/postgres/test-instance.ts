// One instance of a service, as a process of its own, so that it can be killed and frozen: campaigns, leads, and prints
// what happens as lines of JSON. Started by test-process.ts with its task as the only argument.

import { createElector } from "../../src/entry/index.ts";
import { postgres } from "../../src/entry/postgres.ts";
import type { PooledClient, PostgresOptions } from "../../src/entry/postgres.ts";

export interface Task {
  readonly scope: string;
  readonly options: PostgresOptions<PooledClient>;
  /** Run in a fenced transaction of each term: statements, then a pause until a line comes on standard input. */
  /** README's loop: one fenced transaction after the other, until the signal aborts; whatever they throw leaves the work. */
  readonly loop?: string;
  readonly transaction?: { readonly statements: readonly string[]; readonly pause: boolean };
}

function say(line: Readonly<Record<string, unknown>>): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

const task = JSON.parse(process.argv[2] ?? "{}") as Task;
const elector = createElector({
  scope: task.scope,
  backend: postgres(task.options),
  onTransition: (transition) => say({ ...transition, said: "transition" }),
});
const nextLine = (): Promise<void> => new Promise((resolve) => process.stdin.once("data", () => resolve()));

await elector.lead(async (term) => {
  const { transaction, loop } = task;
  if (loop !== undefined) while (!term.signal.aborted) await term.tx((client) => client.query(loop));
  if (transaction !== undefined) {
    try {
      await term.tx(async (client) => {
        for (const text of transaction.statements) {
          say({ said: "running", text });
          await client.query(text);
        }
        say({ said: "in-transaction" });
        if (transaction.pause) await nextLine();
      });
      say({ said: "committed" });
    } catch (error) {
      const { code = "", message = "" } = error as { code?: string; message?: string };
      say({ said: "refused", code, message });
    }
  }
  // The loop may have ended because of it: a signal that is aborted already calls nobody.
  if (!term.signal.aborted) await new Promise((resolve) => term.signal.addEventListener("abort", resolve));
});
