// Runs a benchmark as a user would, and reads the JSON object of its last line.

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";

const BENCH = fileURLToPath(new URL("../bench/main.ts", import.meta.url));
export const LIMIT_MS = 120_000;

interface Finished {
  readonly code: number | null;
  readonly out: string;
  readonly errors: string;
}

export function bench(...args: readonly string[]): Promise<Finished> {
  const child = spawn(process.execPath, ["--no-warnings", BENCH, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let out = "";
  let errors = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
  return new Promise((resolve) => child.once("close", (code) => resolve({ code, out, errors })));
}

export async function jsonOf(...args: readonly string[]): Promise<unknown> {
  const { code, out, errors } = await bench(...args, "--json");
  expect(code, errors).toBe(0);
  return JSON.parse(out.trimEnd().split("\n").at(-1)!);
}

export const positive = expect.toSatisfy((value: unknown) => typeof value === "number" && value > 0) as number;
export const notNegative = expect.toSatisfy((value: unknown) => typeof value === "number" && value >= 0) as number;
