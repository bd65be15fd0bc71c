// What a doctor says: one row for each check, how bad it is, what was seen, what that means and what repairs it. Pure.

import { assertNever } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { type Paint, paintState, PLAIN } from "../kit/colour.ts";
import { columns, printable } from "../kit/output.ts";

/** `unknown`: could not be looked at; the row says why. */
export type Level = "ok" | "warning" | "problem" | "unknown";

export interface Check {
  readonly name: string;
  readonly level: Level;
  /** What was seen. */
  readonly seen: string;
  /** What follows from it; "" where all is well. */
  readonly means: string;
  /** What to do, in words; "" where all is well or where the SQL says it. */
  readonly advice: string;
  /** Statements that repair it, one by one, in the database of the URL, by a role that may. */
  readonly sql: readonly string[];
}

export interface Remedy {
  readonly means: string;
  readonly advice?: string | undefined;
  readonly sql?: readonly string[] | undefined;
}

export function ok(name: string, seen: string): Check {
  return { name, level: "ok", seen, means: "", advice: "", sql: [] };
}

export function warning(name: string, seen: string, remedy: Remedy): Check {
  return bad(name, "warning", seen, remedy);
}

export function problem(name: string, seen: string, remedy: Remedy): Check {
  return bad(name, "problem", seen, remedy);
}

export function unknown(name: string, why: string): Check {
  return bad(name, "unknown", why, { means: "this could not be checked" });
}

function bad(name: string, level: Level, seen: string, { means, advice = "", sql = [] }: Remedy): Check {
  return { name, level, seen, means, advice, sql };
}

/** What a look at the world gave, or why it gave nothing. */
export type Fact<T> = { readonly value: T } | { readonly unknown: string };

export async function factOf<T>(look: () => Promise<T>): Promise<Fact<T>> {
  try {
    return { value: await look() };
  } catch (error) {
    if (TenureError.is(error)) return { unknown: error.message };
    throw error;
  }
}

export function judged<T>(name: string, fact: Fact<T>, judge: (value: T) => Check[]): Check[] {
  return "unknown" in fact ? [unknown(name, fact.unknown)] : judge(fact.value);
}

const EXIT_PROBLEM = 1;

/** Warnings, and what could not be checked, count only if `strict`. */
export function exitCode(checks: readonly Check[], strict: boolean): number {
  const isBad = ({ level }: Check): boolean => level === "problem" || (strict && level !== "ok");
  return checks.some(isBad) ? EXIT_PROBLEM : 0;
}

function count(checks: readonly Check[]): Readonly<Record<Level, number>> {
  const counts: Record<Level, number> = { ok: 0, warning: 0, problem: 0, unknown: 0 };
  for (const { level } of checks) counts[level]++;
  return counts;
}

export function reportObject(backend: string, where: string, checks: readonly Check[]) {
  return { backend, where, ...count(checks), checks };
}

/** The rows, then what is to be done, the worst first. */
export function reportText(where: string, checks: readonly Check[], paint: Paint = PLAIN): string {
  const rows = checks.map(({ level, name, seen }) => [paintState(mark(level), paint), name, printable(seen)]);
  const worst = (["problem", "warning", "unknown"] as const).flatMap((level) =>
    checks.filter((check) => check.level === level),
  );
  const { problem: problems, warning: warnings, unknown: unknowns } = count(checks);
  const verdict =
    worst.length === 0
      ? "All is well."
      : `${problems} problem${problems === 1 ? "" : "s"}, ${warnings} warning${warnings === 1 ? "" : "s"}, ${unknowns} not checked.`;
  return `${where}\n\n${columns(rows)}\n${worst.map((check) => remedyText(check, paint)).join("")}${verdict}\n`;
}

function remedyText({ level, name, means, advice, sql }: Check, paint: Paint): string {
  const lines = [
    `${paintState(mark(level), paint)}: ${name}`,
    `  means: ${printable(means)}`,
    ...(advice === "" ? [] : [`  do:    ${printable(advice)}`]),
    ...sql.map((statement) => `  sql:   ${printable(statement)}`),
  ];
  return `${lines.join("\n")}\n\n`;
}

function mark(level: Level): string {
  switch (level) {
    case "ok":
      return "ok";
    case "warning":
      return "warning";
    case "problem":
      return "PROBLEM";
    case "unknown":
      return "unknown";
    default:
      return assertNever(level, "mark");
  }
}
