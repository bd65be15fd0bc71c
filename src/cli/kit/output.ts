// How commands print what they found: columns for people, one JSON object on one line for programs.

import { type Paint, visibleLength } from "./colour.ts";
import { UsageError } from "./flags.ts";

export const OUTPUTS = ["table", "json"] as const;
/** Of what may be many: `jsonl` is one object on a line for each. */
export const LIST_OUTPUTS = [...OUTPUTS, "jsonl"] as const;
export type Output = (typeof LIST_OUTPUTS)[number];

/** `-o json` is `--output json`, and so is `--json`: the rest of the command line has long flags only. */
export function withLongOutput(args: readonly string[]): string[] {
  const end = args.indexOf("--");
  return args.map((arg, at) => {
    if (end >= 0 && at > end) return arg;
    if (arg === "-o") return "--output";
    if (arg === "--json") return "--output=json";
    if (arg.startsWith("--json=")) {
      throw new UsageError(`--json takes no value, and has ${JSON.stringify(arg.slice("--json=".length))}`);
    }
    return arg.startsWith("-o=") ? `--output=${arg.slice(3)}` : arg;
  });
}

/** Left-aligned columns, two spaces apart; the last one is as long as it is. */
export function columns(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, at) => (widths[at] = Math.max(widths[at] ?? 0, visibleLength(cell))));
  return rows
    .map((row) => row.map((cell, at) => (at === row.length - 1 ? cell : padded(cell, widths[at] ?? 0))).join("  "))
    .map((line) => `${line.trimEnd()}\n`)
    .join("");
}

/** Columns below their names. */
export function table(head: readonly string[], rows: readonly (readonly string[])[], paint: Paint): string {
  return columns([head.map((name) => paint("bold", name)), ...rows]);
}

function padded(cell: string, width: number): string {
  return `${cell}${" ".repeat(width - visibleLength(cell))}`;
}

/** What others wrote (identities, names) must not move a terminal's cursor. */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, "?");
}

export function json(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}

/** `950ms`, `12.3s`, `4m05s`, `3h20m`, `2d4h`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)}ms`;
  const seconds = ms / 1_000;
  if (seconds < 60) return `${seconds.toFixed(1)}s`;
  const whole = Math.floor(seconds);
  if (whole < 3_600) return `${Math.floor(whole / 60)}m${two(whole % 60)}s`;
  if (whole < 86_400) return `${Math.floor(whole / 3_600)}h${two(Math.floor((whole % 3_600) / 60))}m`;
  return `${Math.floor(whole / 86_400)}d${Math.floor((whole % 86_400) / 3_600)}h`;
}

function two(number: number): string {
  return String(number).padStart(2, "0");
}

export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

export function timeOrNull(ms: number | null): string | null {
  return ms === null ? null : isoTime(ms);
}
