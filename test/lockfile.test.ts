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

interface Manifest extends Locked {
  readonly allowScripts: Record<string, boolean>;
}

const EXACT = /^\d+\.\d+\.\d+(?:-[\w.]+)?$/;

describe.each([
  { folder: "", packagesMin: 50 },
  { folder: "test/", packagesMin: 8 },
  { folder: "bench/", packagesMin: 20 },
])("$folder", ({ folder, packagesMin }) => {
  const text = readFileSync(`${folder}package-lock.json`, "utf8");
  const lock = JSON.parse(text) as LockFile;
  const manifest = JSON.parse(readFileSync(`${folder}package.json`, "utf8")) as Manifest;

  it("package-lock.json holds everything that its packages ask for, for every platform", () => {
    expect(Object.keys(lock.packages).length).toBeGreaterThan(packagesMin);
    expect(missing(lock)).toEqual([]);
    expect(missing({ packages: { "": {}, "node_modules/a": { optionalDependencies: { "a-mac": "1.0.0" } } } })).toEqual(
      ["node_modules/a → a-mac"],
    );
  });

  it("package-lock.json records no download addresses", () => {
    expect(text).not.toContain('"resolved"');
  });

  it("package.json asks for exact versions only, and for none at run time", () => {
    const wanted = { ...manifest.devDependencies, ...manifest.optionalDependencies };
    expect(Object.keys(wanted).length).toBeGreaterThan(0);
    for (const version of Object.values(wanted)) expect(version).toMatch(EXACT);
    expect(manifest.dependencies).toBeUndefined();
    if (folder === "") expect(manifest.optionalDependencies).toBeUndefined();
  });

  it("package-lock.json has install scripts only where package.json decides about them", () => {
    const scripted = Object.entries(lock.packages).flatMap(([path, locked]) =>
      locked.hasInstallScript === true ? [path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length)] : [],
    );
    expect(scripted.filter((name) => !(name in manifest.allowScripts))).toEqual([]);
  });
});

it("test/ does not hold a second pg, which would not be the one that src/ uses", () => {
  const { packages } = JSON.parse(readFileSync("test/package-lock.json", "utf8")) as LockFile;
  expect(Object.keys(packages).filter((path) => /(?:^|\/)pg(?:-\w+)?$/.test(path))).toEqual([]);
});
