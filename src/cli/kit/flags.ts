// Command lines of `tenure`: flags with and without values, durations, and one line for whoever gets one wrong.

import { TYPO_DISTANCE_MAX } from "../../core/kit/limits.ts";
import { BEGINNING_MIN } from "../limits.ts";

export const EXIT_USAGE = 64;
const DAY_MS = 24 * 60 * 60 * 1_000;
const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: DAY_MS };

/** The user's mistake, in one line. */
export class UsageError extends Error {
  readonly exitCode: number = EXIT_USAGE;
}

/** "value": the flag takes one, as `--flag V` or `--flag=V`. "list": the same, and may be given again. "switch": it takes none. */
export type FlagKinds<Name extends string> = Readonly<Record<Name, "value" | "list" | "switch">>;

export interface ParsedFlags<Name extends string> {
  /** A switch that was given is ""; of a list, the last. */
  readonly values: Partial<Record<Name, string>>;
  /** All that was given of a list, in order. */
  readonly lists: Partial<Record<Name, readonly string[]>>;
  /** What belongs to no flag, in front of `--`. */
  readonly words: readonly string[];
  /** What follows `--`; undefined where there is none. */
  readonly rest: readonly string[] | undefined;
}

/** Node's parseArgs takes `--grace -1` for a mistake of its own kind, and explains in several lines. */
export function parseFlags<Name extends string>(args: readonly string[], kinds: FlagKinds<Name>): ParsedFlags<Name> {
  const values: Partial<Record<Name, string>> = {};
  const lists: Partial<Record<Name, readonly string[]>> = {};
  const words: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const arg = args[at]!;
    if (arg === "--") return { values, lists, words, rest: args.slice(at + 1) };
    if (!arg.startsWith("-") || arg === "-") {
      words.push(arg);
      continue;
    }
    const equals = arg.indexOf("=");
    const flag = equals < 0 ? arg : arg.slice(0, equals);
    const name = flag.slice(2) as Name;
    if (!flag.startsWith("--") || !Object.hasOwn(kinds, name)) throw unknownFlag(flag, Object.keys(kinds));
    if (values[name] !== undefined && kinds[name] !== "list")
      throw new UsageError(`${flag} is given twice; give it once`);
    if (kinds[name] === "switch") {
      if (equals >= 0) throw new UsageError(`${flag} takes no value, and has ${JSON.stringify(arg.slice(equals + 1))}`);
      values[name] = "";
      continue;
    }
    const value = equals < 0 ? args[++at] : arg.slice(equals + 1);
    if (value === undefined || value === "--")
      throw new UsageError(`${flag} takes a value, and there is none after it`);
    values[name] = value;
    if (kinds[name] === "list") lists[name] = [...(lists[name] ?? []), value];
  }
  return { values, lists, words, rest: undefined };
}

function unknownFlag(flag: string, names: readonly string[]): UsageError {
  const flags = names.map((name) => `--${name}`);
  return new UsageError(`there is no ${flag}${suggestion(flag, flags) || `; give ${flags.join(", ")}`}`);
}

/** `500ms`, `2s`, `1.5m`, `1h`, `7d` in milliseconds. */
export function parseDuration(flag: string, text: string, msMax: number = DAY_MS): number {
  const [, number, unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? [];
  const durationMs = Number(number) * (UNITS_MS[unit] ?? Number.NaN);
  if (Number.isNaN(durationMs)) {
    throw new UsageError(`${flag} takes a duration such as 500ms, 2s or 1m, not ${JSON.stringify(text)}`);
  }
  if (durationMs > msMax) {
    const most = msMax > DAY_MS ? `${msMax / DAY_MS}d` : `${(msMax / DAY_MS) * 24}h`;
    throw new UsageError(`${flag} takes at most ${most}, not ${text}`);
  }
  return durationMs;
}

export function oneOf<T extends string>(flag: string, text: string, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === text);
  if (found !== undefined) return found;
  throw new UsageError(`${flag} takes ${choices.join(" or ")}, not ${JSON.stringify(text)}`);
}

/** "; did you mean …?", as far as a typing mistake or a missing end goes; else empty. */
export function suggestion(text: string, names: readonly string[]): string {
  const distances = names.map((name) => editDistance(text, name));
  const least = Math.min(...distances);
  const near =
    least <= TYPO_DISTANCE_MAX
      ? names.filter((_name, at) => distances[at] === least)
      : names.filter((name) => text.length >= BEGINNING_MIN && name.startsWith(text));
  return near.length === 0 ? "" : `; did you mean ${near.join(" or ")}?`;
}

/** How many letters are to be replaced, put in or left out. */
export function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}
