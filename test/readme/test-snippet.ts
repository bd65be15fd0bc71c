// The first program of README.md, taken from it word for word and run as a process: whoever copies it has this.
// What it leaves to its user (`url`, `payNext`) is put before it, and what the test wants to know.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { waitFor } from "../servers/index.ts";

/** The first block of TypeScript. */
export function readmeSnippet(): string {
  const [, text] = /```ts\n([\s\S]*?)```/.exec(readFileSync("README.md", "utf8")) ?? [];
  if (text?.includes("elector.lead(") !== true) throw new Error("README.md does not begin with a program that leads");
  return text;
}

/**
 * Pays the payment after the last one: it reads, waits and writes, and nothing in the table keeps two writers from paying one
 * payment twice. After SIGUSR2 the connection of the next one ends while it commits, and the server does not learn of it, as
 * after a network that hands on no end of a connection.
 */
const PAY_NEXT = `
import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
const url = process.argv[2];
const sockets = [];
const { connect } = Socket.prototype;
Socket.prototype.connect = function (...args) {
  sockets.push(this);
  return connect.apply(this, args);
};
let breaks = false;
process.on("SIGUSR2", () => (breaks = true));
async function payNext(client) {
  const { rows } = await client.query("select coalesce(max(payment), 0) + 1 as next from payout");
  await sleep(1);
  await client.query("insert into payout (payment, pid) values ($1, $2)", [rows[0].next, process.pid]);
  await client.query("select pg_sleep(0.001)");
  if (!breaks) return;
  breaks = false;
  await client.query("set local client_connection_check_interval = 0");
  const { localPort } = client.connection.stream;
  setTimeout(() => sockets.find((one) => one.localPort === localPort).destroy(), 200);
}
`;

export const PAYOUTS = `
create table payout (payment bigint not null, pid int not null, at timestamptz not null default clock_timestamp());
create index on payout (payment);
create table slow_commit (seconds float not null);
create function slow_commit() returns trigger language plpgsql as $$
begin perform pg_sleep(seconds) from slow_commit; return null; end $$;
create constraint trigger slow_commit after insert on payout deferrable initially deferred
  for each row execute function slow_commit()`;

export class Program {
  readonly #directory: string;
  readonly #child: ChildProcess;
  #errors = "";
  #exit: string | undefined;

  /** `before` is put before the program of README.md. */
  constructor(url: string, snippet = readmeSnippet(), before = PAY_NEXT) {
    this.#directory = mkdtempSync(join(tmpdir(), "tenure-readme-"));
    mkdirSync(join(this.#directory, "node_modules"));
    symlinkSync(resolve("."), join(this.#directory, "node_modules/tenure"));
    writeFileSync(join(this.#directory, "package.json"), '{"type":"module"}');
    const file = join(this.#directory, "main.js");
    writeFileSync(file, `${before}\n${snippet}`);
    this.#child = spawn(process.execPath, ["--conditions=tenure-source", file, url], {
      stdio: ["ignore", "inherit", "pipe"],
    });
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#errors += text;
    });
    this.#child.once("exit", (code, signal) => {
      this.#exit = signal ?? String(code);
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** How it ended: its code or its signal; undefined while it runs. */
  get exit(): string | undefined {
    return this.#exit;
  }

  /** Everything on stderr. */
  get errors(): string {
    return this.#errors;
  }

  /** The warnings of Tenure, a line each. */
  get warnings(): string[] {
    return this.#errors.split("\n").filter((line) => line.includes("TenureWarning"));
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async end(): Promise<void> {
    if (this.#exit === undefined) this.#child.kill("SIGKILL");
    await waitFor("a program to exit", () => this.#exit !== undefined);
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
