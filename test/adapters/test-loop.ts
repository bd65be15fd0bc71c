// A leader's loop as a process of its own, as the documents show it: one fenced transaction after the other, errors of Tenure that
// can be retried are retried, any other ends the process. An unknown outcome is looked up before the same entry is written again.

import { Pool } from "pg";
import { TenureError } from "../../src/core/kit/errors.ts";
import { createElector } from "../../src/entry/index.ts";
import { postgres } from "../../src/entry/postgres.ts";
import { FAST } from "../postgres/test-seat.ts";
import { type FencedTerm, type LibraryName, libraryOf } from "./test-libraries.ts";

export interface LoopTask {
  readonly library: LibraryName;
  readonly url: string;
  readonly name: string;
}

const task = JSON.parse(process.argv[2] ?? "{}") as LoopTask;
const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
const library = libraryOf(task.library, task.url, 3);
const reader = new Pool({ connectionString: task.url, max: 1 });
reader.on("error", () => undefined);
const elector = createElector({
  scope: "loop",
  backend: postgres({ ...FAST, url: task.url }),
  onTransition: (transition) => say({ ...transition, said: transition.kind }),
});
let entries = 0;
let entry = "";
let isInDoubt = false;

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

async function writeOne(term: FencedTerm): Promise<void> {
  if (isInDoubt) {
    const { rows } = await reader.query("select from entry where name = $1", [entry]);
    isInDoubt = false;
    if (rows.length > 0) entry = "";
  }
  if (entry === "") entry = `${task.name}-${++entries}`;
  await library.transact(term, async (send) => {
    await send("update counter set n = n + 1");
    // Something else to wait for, inside of the transaction.
    await pause(1);
    await send(`insert into entry select n, '${entry}', ${term.epoch} from counter`);
  });
  say({ said: "wrote", entry });
  entry = "";
}

for (;;) {
  try {
    await elector.lead(async (term) => {
      while (!term.signal.aborted) {
        try {
          await writeOne(term);
        } catch (error) {
          if (TenureError.is(error) && error.code === "OUTCOME_UNKNOWN") isInDoubt = true;
          else if (!isRetryable(error)) throw error;
          say({ said: "failed", code: (error as { code?: unknown }).code });
          await pause(20);
        }
      }
    });
  } catch (error) {
    if (!isRetryable(error)) throw error;
    await pause(20);
  }
}

/** The reader is plain `pg`: while the server is away, its errors have no code of Tenure's. */
function isRetryable(error: unknown): boolean {
  if (!TenureError.is(error)) return isInDoubt;
  return error.retryable || error.code === "NOT_LEADER" || error.code === "STALE_EPOCH";
}
