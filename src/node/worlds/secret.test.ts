import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import type { Logger } from "../../ports/logger.ts";
import { peerSecret } from "./secret.ts";

const directories: string[] = [];
const warnings: string[] = [];
const ignore = (): void => undefined;
const logger: Logger = { info: ignore, warn: (_fields, text) => void warnings.push(text), error: ignore };

afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
  warnings.length = 0;
});

function home(): string {
  const directory = mkdtempSync(join(tmpdir(), "tenure-secret-"));
  directories.push(directory);
  return directory;
}

test("the first node makes the secret at the user's own place, readable by that user alone; the next ones find it", () => {
  const environment = { XDG_STATE_HOME: home() };
  const first = peerSecret({ file: null, isAlone: false, logger, environment });
  const path = join(environment.XDG_STATE_HOME, "tenure", "peer-secret");
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readFileSync(path, "utf8").trim()).toBe(new TextDecoder().decode(first));
  expect(peerSecret({ file: null, isAlone: false, logger, environment })).toEqual(first);
  expect(first.length).toBe(64);
  const elsewhere = peerSecret({ file: join(home(), "s"), isAlone: false, logger, environment });
  expect(elsewhere).not.toEqual(first);
});

test("a secret that others can read, or that is none, is refused with what to do", () => {
  const file = join(home(), "secret");
  writeFileSync(file, "short", { mode: 0o600 });
  expect(() => peerSecret({ file, isAlone: true, logger })).toThrow(/at least 32/);
  writeFileSync(file, "x".repeat(64));
  expect(peerSecret({ file, isAlone: true, logger }).length).toBe(64);
  for (const mode of [0o640, 0o604, 0o660]) {
    chmodSync(file, mode);
    expect(() => peerSecret({ file, isAlone: true, logger })).toThrow(/mode 0600/);
  }
});

test("where no file can be kept, a node alone goes on and says so, and one with peers is refused", () => {
  const file = join(home(), "file");
  writeFileSync(file, "");
  const environment = { XDG_STATE_HOME: file };
  expect(peerSecret({ file: null, isAlone: true, logger, environment }).length).toBe(32);
  expect(warnings).toMatchObject([expect.stringContaining("peer.secret_file")]);
  expect(() => peerSecret({ file: null, isAlone: false, logger, environment })).toThrow(/peer\.secret_file/);
});
