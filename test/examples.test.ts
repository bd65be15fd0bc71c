// Each example as its user starts it: one command, two instances, a real Postgres and a kill -9 in the middle.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

const EXAMPLES = {
  cron: /^cron: \d+ done by two instances and one kill -9, 0 wrong$/,
  payer: /^payer: 200 done by two instances and one kill -9, 0 wrong; the provider made 200 payments for \d+ requests$/,
  outbox:
    /^outbox: 200 done by two instances and one kill -9, 0 wrong; the receiver got 200 messages in order, \d+ of them twice$/,
};

const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as { scripts: Record<string, string> };
const [, ...args] = scripts.example?.split(" ") ?? [];

it.for(Object.entries(EXAMPLES))("npm run example -- %s survives the kill of its leader", async ([name, verdict]) => {
  const child = spawn(process.execPath, [...args, name], { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  const code = await new Promise((resolve) => {
    child.on("close", resolve);
  });
  expect(output.trim().split("\n").at(-1)).toMatch(verdict);
  expect(code).toBe(0);
});
