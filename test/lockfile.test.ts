// A lock file that a clean `npm ci` accepts everywhere. Some releases of native tools reach the registry without
// all of their platform binaries; npm then writes a lock file that it refuses to install from.

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

interface Locked {
  readonly dependencies?: Record<string, string>;
  readonly devDependencies?: Record<string, string>;
  readonly optionalDependencies?: Record<string, string>;
  readonly hasInstallScript?: boolean;
}

interface LockFile {
  readonly packages: Record<string, Locked>;
}

/** What a locked package asks for and the lock file does not have, looked up as Node resolves it. */
function missing({ packages }: LockFile): string[] {
  return Object.entries(packages).flatMap(([path, locked]) => {
    const wanted = { ...locked.dependencies, ...locked.devDependencies, ...locked.optionalDependencies };
    return Object.keys(wanted)
      .filter((name) => !foldersAbove(path).some((folder) => packages[`${folder}node_modules/${name}`] !== undefined))
      .map((name) => `${path} → ${name}`);
  });
}

function foldersAbove(path: string): string[] {
  const parts = path === "" ? [] : path.split("/node_modules/");
  return ["", ...parts.map((_, index) => `${parts.slice(0, index + 1).join("/node_modules/")}/`)];
}

describe("package-lock.json", () => {
  const text = readFileSync("package-lock.json", "utf8");
  const lock = JSON.parse(text) as LockFile;
  const manifest = JSON.parse(readFileSync("package.json", "utf8")) as Locked & {
    allowScripts: Record<string, boolean>;
  };

  it("holds everything that its packages ask for, for every platform", () => {
    expect(Object.keys(lock.packages).length).toBeGreaterThan(50);
    expect(missing(lock)).toEqual([]);
    expect(missing({ packages: { "": {}, "node_modules/a": { optionalDependencies: { "a-mac": "1.0.0" } } } })).toEqual(
      ["node_modules/a → a-mac"],
    );
  });

  it("records no download addresses", () => {
    expect(text).not.toContain('"resolved"');
  });

  it("is asked for exact versions only, and for none at run time", () => {
    for (const version of Object.values(manifest.devDependencies ?? {})) expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    expect(manifest.dependencies).toBeUndefined();
  });

  it("has install scripts only where package.json decides about them", () => {
    const scripted = Object.entries(lock.packages).flatMap(([path, locked]) =>
      locked.hasInstallScript === true ? [path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length)] : [],
    );
    expect(scripted.filter((name) => !(name in manifest.allowScripts))).toEqual([]);
  });
});
