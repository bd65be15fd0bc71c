// A service as a process of its own: a term, and fenced transactions of one library. It prints what happened as lines of JSON.
// Whatever ends it, ends it as it would end a user's process: nothing here listens for uncaught errors.

import { Pool } from "pg";
import { TenureError } from "../../src/core/kit/errors.ts";
import { createElector } from "../../src/entry/index.ts";
import { postgres } from "../../src/entry/postgres.ts";
import { type Library, type LibraryName, libraryOf } from "./test-libraries.ts";
import { type Moment, Wire } from "./test-wire.ts";

export interface ServiceTask {
  readonly library: LibraryName;
  readonly url: string;
  readonly what: "every packet" | "idle" | "twenty times";
}

/** How one transaction ended, and how often its memo is in the table. */
export interface Ended {
  readonly said: "ended";
  readonly fault: string;
  readonly verdict: string;
  readonly isTenureError: boolean;
  readonly rows: number;
}

const PACKETS_MAX = 40;
const TRIES_MAX = 20;
const MOMENTS: readonly Moment[] = ["before", "during", "answer lost"];

const task = JSON.parse(process.argv[2] ?? "{}") as ServiceTask;
const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
const warnings: string[] = [];
process.on("warning", (warning) => warnings.push(`${warning.name}: ${warning.message}`));

const admin = new Pool({ connectionString: task.url, max: 4 });
const target = new URL(task.url);
const wire = new Wire(Number(target.port), admin);
const through = new URL(task.url);
through.port = String(await wire.listen());
const library: Library = libraryOf(task.library, through.href, 3);
const options = { url: task.url, serverTimeoutMs: 60_000, marginMs: 1_000 };
const elector = createElector({ scope: "adapters", backend: postgres(options) });
const term = await elector.acquire();
let memos = 0;

/** Two statements, and between them something else to wait for. */
async function write(fault: string, between: () => Promise<unknown> = () => admin.query("select 1")): Promise<string> {
  const memo = `${fault} #${++memos}`;
  let verdict = "committed";
  let isTenureError = false;
  try {
    await library.transact(term, async (send) => {
      await send(`insert into written values ('${memo}', ${term.epoch})`);
      await between();
      await send("select 1");
    });
  } catch (error) {
    isTenureError = TenureError.is(error);
    verdict = TenureError.is(error) ? error.code : String(error);
  }
  const { rows } = await admin.query("select from written where memo = $1", [memo]);
  say({ said: "ended", fault, verdict, isTenureError, rows: rows.length } satisfies Ended);
  return verdict;
}

/** The next one may still be given a session that has ended, where nobody has seen it yet. */
async function goOn(): Promise<void> {
  for (let left = TRIES_MAX; (await write("none")) !== "committed"; left--) {
    if (left === 0) throw new Error(`nothing was committed in ${TRIES_MAX} transactions without a fault`);
  }
}

async function everyPacket(): Promise<void> {
  for (const moment of MOMENTS) {
    for (let at = 1; ; at++) {
      if (at > PACKETS_MAX) throw new Error(`more than ${PACKETS_MAX} packets`);
      // Of a session that is open already: what is counted begins with BEGIN.
      wire.plan(0, moment);
      await goOn();
      wire.plan(at, moment);
      await write(`${moment} packet ${at}`);
      if (wire.sent < at) break;
    }
  }
}

async function idle(): Promise<void> {
  await write("none");
  await write("while it awaits something else", () => wire.endSessions());
  await write("while it awaits something else", async () => {
    await wire.endSessions();
    // What came back belongs to others.
    if (task.library !== "plain-kysely") await Promise.all([0, 1, 2].map(() => write("another transaction meanwhile")));
  });
  await write("none");
}

async function twentyTimes(): Promise<void> {
  for (let i = 0; i < 20; i++) {
    await goOn();
    await write("idle", () => wire.endSessions());
    await goOn();
    wire.plan(1, "before");
    await write("BEGIN");
  }
  wire.plan(0, "before");
  await goOn();
  await Promise.all(Array.from({ length: 20 }, () => write("none")));
  say({ said: "counted", sessions: library.sessions() ?? wire.connections, connections: wire.connections });
}

await { "every packet": everyPacket, idle, "twenty times": twentyTimes }[task.what]();
say({ said: "lived", warnings });
await library.end();
await term.resign();
await elector.close();
await admin.end();
wire.end();
