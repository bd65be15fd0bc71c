// `tenure` as packages have it: without the files that `files` of both leaves out. `tenure dev` is among them.

import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { tenure } from "./test-tenure.ts";

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "tenure-packed-"));
  writeFileSync(join(directory, "package.json"), '{ "type": "module" }');
  const isPacked = (file: string): boolean => dirname(file) !== join("src/cli/dev") || basename(file) === "help.ts";
  for (const room of ["cli", "core", "contract", "drivers/system"])
    cpSync(join("src", room), join(directory, "src", room), { recursive: true, filter: isPacked });
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

async function packed(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const main = join(directory, "src/cli/main.ts");
  return await promisify(execFile)(process.execPath, [main, ...args]).then(
    (said) => ({ code: 0, ...said }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  );
}

it("leaves `dev` out where it is not packed, and says where it is", async () => {
  for (const file of ["package.json", "packages/tenure-server/package.json"])
    expect((JSON.parse(readFileSync(file, "utf8")) as { files: string[] }).files, file).toContain("!dist/cli/dev/*");
  expect((await tenure("help")).stdout).toMatch(/^ {2}tenure dev /m);
  const { code, stdout } = await packed("help");
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ {2}tenure config /m);
  expect(stdout).not.toMatch(/^ {2}tenure dev /m);
  const dev = await packed("dev");
  expect(dev).toMatchObject({ code: 69, stdout: "" });
  expect(dev.stderr).toMatch(/^tenure: `tenure dev` is in Tenure's repository, and in no package/);
  expect(dev.stderr).not.toContain("npm install");
});
