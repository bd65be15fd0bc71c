// `npm run check`: every check that needs no test run. Each step is named, shows the line in which its tool says
// what it looked at, and runs to its end whatever the others found.

import { spawn } from "node:child_process";

interface Step {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  /** The line of the tool's output that proves that it looked at something. */
  readonly summary?: RegExp;
}

const STEPS: readonly Step[] = [
  { name: "format", command: ["oxfmt", "--check"], summary: /on [1-9]\d* files/ },
  { name: "lint", command: ["oxlint", "--type-aware", "--deny-warnings"], summary: /on [1-9]\d* files/ },
  { name: "types", command: ["tsc", "-p", "tsconfig.json", "--diagnostics"], summary: /^Files:\s+[1-9]/ },
  {
    name: "types of the pure rooms",
    command: ["tsc", "-p", "tsconfig.pure.json", "--diagnostics"],
    summary: /^Files:\s+[1-9]/,
  },
  {
    name: "types of the packages",
    command: ["tsc", "-p", "tsconfig.build.json", "--noEmit", "--diagnostics"],
    summary: /^Files:\s+[1-9]/,
  },
  { name: "types of the dashboard", command: ["tsc", "-p", "web", "--diagnostics"], summary: /^Files:\s+[1-9]/ },
  { name: "import directions", command: ["node", "scripts/directions.ts"], summary: /[1-9]\d* imports checked/ },
  { name: "dead code", command: ["knip", "--no-progress", "--no-config-hints"] },
  { name: "code only tests use", command: ["knip", "--production", "--no-progress", "--no-config-hints"] },
];

interface Outcome {
  readonly ok: boolean;
  readonly output: string;
}

let failed = 0;
for (const step of STEPS) {
  const startedAt = performance.now();
  const { ok, output } = await run(step.command);
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  const summary = output.split("\n").find((line) => step.summary?.test(line) === true);
  const blind = step.summary !== undefined && summary === undefined;
  if (!ok || blind) failed++;
  console.log(
    `${ok && !blind ? "ok  " : "FAIL"} ${step.name.padEnd(24)} ${seconds} s  ${summary?.trim().replaceAll(/\s+/g, " ") ?? ""}`.trimEnd(),
  );
  if (!ok) console.log(output.trim().replaceAll(/^/gm, "     "));
  else if (blind)
    console.log(`     ${step.command.join(" ")} did not say what it looked at; it may have looked at nothing`);
}
console.log(`${STEPS.length} checks: ${STEPS.length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

function run([program, ...args]: Step["command"]): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], shell: process.platform === "win32" });
    let output = "";
    const collect = (chunk: Buffer): void => {
      output += chunk.toString();
    };
    child.stdout.on("data", collect);
    child.stderr.on("data", collect);
    child.on("error", reject);
    child.on("close", (code) => resolve({ ok: code === 0, output }));
  });
}
