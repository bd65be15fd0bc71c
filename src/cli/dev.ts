// `npm start`: the demonstration on the simulator, in real time, in the terminal. This file is the composition
// root: it gives the demonstration a digest and a pace, and shows what it tells. The last lines are the same
// with and without a terminal; colours and the status line are for terminals only.

import { setTimeout as sleep } from "node:timers/promises";
import { systemDigest } from "../drivers/system/digest.ts";
import { Demonstration, jsonOf, type RecordKind, tableOf, type TimelineRecord } from "../sim/demo/index.ts";
import { editDistance } from "./flags.ts";

const EXIT_PROBLEM = 1;
const EXIT_USAGE = 64;
const EXIT_INTERRUPTED = 130;

const LENGTH_DEFAULT_MS = 12_000;
const LENGTH_MIN_MS = 5_000;
const LENGTH_MAX_MS = 3_600_000;
const SEED_MAX = 999_999;
/** A typing error is this many letters away at most. */
const TYPO_LETTERS_MAX = 2;

const HELP = `npm start [-- FLAGS]: three nodes elect a leader, which is then killed, frozen and asked to hand over.

  --for 30s    how long; from 12s on in rounds of 12s or more (5s to 1h, default 12s)
  --seed N     show the same run again (default: another one each time)
  --fast       do not wait: as fast as the machine can
  --json       end with one JSON object: {failovers: [{cause, ms}], writes, lost, unknown, stale, leader, epoch}
  --help       this text

Exit codes: 0 one leader, equal logs, nothing lost; 1 otherwise; 64 wrong flag; 130 interrupted.`;

interface Flags {
  lengthMs: number;
  seed: number;
  fast: boolean;
  json: boolean;
  help: boolean;
}

const FLAGS: Readonly<Record<string, { takesValue: boolean; set: (flags: Flags, value: string) => void }>> = {
  "--for": { takesValue: true, set: (flags, value) => (flags.lengthMs = parseLength(value)) },
  "--seed": { takesValue: true, set: (flags, value) => (flags.seed = parseSeed(value)) },
  "--fast": { takesValue: false, set: (flags) => (flags.fast = true) },
  "--json": { takesValue: false, set: (flags) => (flags.json = true) },
  "--help": { takesValue: false, set: (flags) => (flags.help = true) },
};

class UsageError extends Error {}
class Interrupted extends Error {}

async function show(flags: Flags): Promise<number> {
  const screen = new Screen();
  const interruption = new AbortController();
  process.once("SIGINT", () => interruption.abort());
  const startedAtMs = performance.now();
  const demonstration = new Demonstration({
    seed: flags.seed,
    lengthMs: flags.lengthMs,
    digest: systemDigest,
    pace: async (virtualMs) => {
      if (!flags.fast) {
        screen.status(virtualMs, demonstration.status());
        const aheadMs = virtualMs - (performance.now() - startedAtMs);
        // A rejection means that it was aborted, which is looked at below.
        if (aheadMs > 1) await sleep(aheadMs, undefined, { signal: interruption.signal }).catch(() => undefined);
      }
      if (interruption.signal.aborted) throw new Interrupted();
    },
  });
  screen.line(`Tenure: three nodes on the simulator, in virtual time${flags.fast ? "" : " at the pace of real time"}.`);
  screen.line(`Seed ${flags.seed}; the same run again: npm start -- --seed ${flags.seed}${lengthFlag(flags)}`);
  screen.line("");
  let interrupted = false;
  try {
    for await (const record of demonstration.tell()) screen.record(record);
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
    interrupted = true;
    await demonstration.conclude();
  }
  const summary = demonstration.summary();
  screen.line("");
  if (interrupted) screen.line("Interrupted. Everybody was let run again until the logs agreed:");
  for (const line of tableOf(summary)) screen.line(line);
  if (flags.json) screen.line(jsonOf(summary));
  if (interrupted) return EXIT_INTERRUPTED;
  return summary.ok ? 0 : EXIT_PROBLEM;
}

// ---- flags -------------------------------------------------------------------------------------------

function parseFlags(args: readonly string[]): Flags {
  const flags: Flags = {
    lengthMs: LENGTH_DEFAULT_MS,
    seed: Math.floor(Math.random() * SEED_MAX),
    fast: false,
    json: false,
    help: false,
  };
  const rest = [...args];
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    const equals = arg.indexOf("=");
    const name = equals < 0 ? arg : arg.slice(0, equals);
    const flag = Object.hasOwn(FLAGS, name) ? FLAGS[name] : undefined;
    if (flag === undefined) throw new UsageError(unknownFlag(name));
    if (!flag.takesValue && equals >= 0) throw new UsageError(`${name} takes no value`);
    const value = !flag.takesValue ? "" : equals < 0 ? rest.shift() : arg.slice(equals + 1);
    if (value === undefined) throw new UsageError(`${name} needs a value; see npm start -- --help`);
    flag.set(flags, value);
  }
  return flags;
}

function unknownFlag(name: string): string {
  const letters = name.replace(/^-+/, "");
  const near = Object.keys(FLAGS).find(
    (flag) => flag.startsWith(`--${letters}`) || editDistance(`--${letters}`, flag) <= TYPO_LETTERS_MAX,
  );
  const hint = near === undefined ? "" : `: did you mean ${near}?`;
  return `unknown ${name.startsWith("-") ? "flag" : "argument"} ${name}${hint} (npm start -- --help lists them all)`;
}

function parseLength(value: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(s|m|h)$/.exec(value) ?? [];
  const lengthMs = Number(number) * (unit === "h" ? 3_600_000 : unit === "m" ? 60_000 : 1_000);
  if (!(lengthMs >= LENGTH_MIN_MS && lengthMs <= LENGTH_MAX_MS)) {
    throw new UsageError(`--for ${value}: give a time from 5s to 1h, such as 30s or 2m`);
  }
  return lengthMs;
}

function parseSeed(value: string): number {
  const seed = /^\d+$/.test(value) ? Number(value) : Number.NaN;
  if (!Number.isSafeInteger(seed)) throw new UsageError(`--seed ${value}: give a whole number, such as 7`);
  return seed;
}

/** The length is a part of what decides the run. */
function lengthFlag({ lengthMs }: Flags): string {
  return lengthMs === LENGTH_DEFAULT_MS ? "" : ` --for ${lengthMs / 1_000}s`;
}

// ---- the screen --------------------------------------------------------------------------------------

const COLOURS: Readonly<Record<RecordKind, string>> = {
  fault: "31",
  election: "33",
  leader: "32",
  write: "36",
  recovery: "0",
  problem: "1;31",
};
const STATUS_EVERY_MS = 100;
const CLEAR_LINE = "\r\u001B[K";

class Screen {
  readonly #terminal = process.stdout.isTTY && process.env["TERM"] !== "dumb";
  readonly #colours = this.#terminal && (process.env["NO_COLOR"] ?? "") === "";
  #statusShown = false;
  #statusAtMs = 0;

  line(text: string): void {
    process.stdout.write(`${this.#statusShown ? CLEAR_LINE : ""}${text}\n`);
    this.#statusShown = false;
  }

  record({ atMs, node, kind, text }: TimelineRecord): void {
    const time = `${(atMs / 1_000).toFixed(3)} s`.padStart(9);
    const who = (node ?? (kind === "write" ? "client" : "")).padEnd(6);
    if (kind === "fault") this.line("");
    this.line(
      this.#colours
        ? `\u001B[2m${time}\u001B[0m  ${who} \u001B[${COLOURS[kind]}m${text}\u001B[0m`
        : `${time}  ${who} ${text}`,
    );
  }

  /** The last line of a terminal, overwritten; nothing elsewhere. */
  status(atMs: number, { leader, epoch, acknowledged }: ReturnType<Demonstration["status"]>): void {
    if (!this.#terminal || atMs - this.#statusAtMs < STATUS_EVERY_MS) return;
    this.#statusAtMs = atMs;
    this.#statusShown = true;
    const leads = leader === null ? "nobody leads" : `${leader} leads epoch ${epoch}`;
    const text = `${(atMs / 1_000).toFixed(1)} s`.padStart(9) + `      ${leads} · ${acknowledged} writes acknowledged`;
    process.stdout.write(CLEAR_LINE + text);
  }
}

// ---- the command: at the end, because classes exist only below their declaration -------------------------

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // `npm start | head` has read enough.
  if (error.code === "EPIPE") process.exit(0);
  throw error;
});
try {
  const flags = parseFlags(process.argv.slice(2));
  if (flags.help) console.log(HELP);
  else process.exitCode = await show(flags);
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(error.message);
  process.exitCode = EXIT_USAGE;
}
