// In which order the saved state of mesh.sqlite reaches the disk: a power loss between any two of these steps leaves a whole one.

import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { copyBase, keepBase, readBase } from "./base.ts";

const calls: string[] = [];
const { openSync, fsyncSync, renameSync, rmSync, writeFileSync } = fs;
const real = { openSync, fsyncSync, renameSync, rmSync, writeFileSync };

/** Node's own functions, which also write down what they are asked for. */
beforeAll(() => {
  const opened = new Map<number, string>();
  Object.assign(fs, {
    openSync: (path: string, flags: string) => {
      const file = real.openSync(path, flags);
      opened.set(file, path);
      return file;
    },
    fsyncSync: (file: number) => {
      const path = opened.get(file)!;
      calls.push(fs.statSync(path).isDirectory() ? "sync names" : `sync ${path}`);
      real.fsyncSync(file);
    },
    renameSync: (from: string, to: string) => {
      calls.push(`rename ${to}`);
      real.renameSync(from, to);
    },
    rmSync: (path: string, options: fs.RmOptions) => {
      calls.push(`remove ${path}`);
      real.rmSync(path, options);
    },
    writeFileSync: (path: string, text: string, options: { flush?: boolean }) => {
      calls.push(`write ${path}`);
      real.writeFileSync(path, text, options);
    },
  });
  syncBuiltinESMExports();
});

afterAll(() => {
  Object.assign(fs, real);
  syncBuiltinESMExports();
});

let path = "";

beforeEach(() => {
  const directory = fs.mkdtempSync(join(tmpdir(), "tenure-base-"));
  path = join(directory, "mesh.sqlite");
  fs.writeFileSync(`${path}.replay-1`, "what was built", {});
  calls.length = 0;
  return () => fs.rmSync(directory, { recursive: true });
});

const named = (): string[] => calls.map((one) => one.replace(/ [/].*[/]/, " "));

test("the file has its name before the record names it, and the one before goes last", async () => {
  const first = await keepBase(path, `${path}.replay-1`, 4);
  fs.writeFileSync(`${path}.replay-2`, "what was built later", {});
  calls.length = 0;
  const second = await keepBase(path, `${path}.replay-2`, 6);
  expect(named()).toEqual([
    `rename ${second.file}`,
    "sync names",
    "write mesh.sqlite.base.tmp",
    "sync mesh.sqlite.base.tmp",
    "rename mesh.sqlite.base",
    "sync names",
    `remove ${first.file}`,
  ]);
  expect(readBase(path)).toEqual(second);
});

test("a copy is durable before it has the name under which it is used", async () => {
  const base = await keepBase(path, `${path}.replay-1`, 4);
  calls.length = 0;
  copyBase(path, base, path);
  expect(named()).toEqual([`sync ${basename(path)}.tmp`, `rename ${basename(path)}`]);
  expect(fs.readFileSync(path, "utf8")).toBe("what was built");
});
