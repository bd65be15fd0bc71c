// What scripts/release.ts asks of the repository before a release, and that the release it has now lacks only what comes last.

import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { missingFor } from "../scripts/release.ts";

const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
const FILES = [
  "package.json",
  "packages/tenure-server/package.json",
  "package-lock.json",
  "packages/tenure-server/README.md",
  "deploy/docker/Dockerfile",
  "deploy/docker/compose.yaml",
  "deploy/kubernetes/kustomization.yaml",
  "docs/deploy.md",
  "docs/server.md",
  "CHANGELOG.md",
];

let copy: string;
beforeEach(() => {
  copy = mkdtempSync(join(tmpdir(), "tenure-release-"));
  for (const file of FILES) {
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    cpSync(file, join(copy, file));
  }
  cpSync("test/compat", join(copy, "test/compat"), { recursive: true });
});
afterEach(() => rmSync(copy, { recursive: true }));

function change(file: string, edit: (text: string) => string): void {
  writeFileSync(join(copy, file), edit(readFileSync(join(copy, file), "utf8")));
}

/** As a person does for a release; the address is of the test. */
function prepare(): void {
  for (const file of FILES.slice(0, 2))
    change(file, (text) => JSON.stringify({ ...JSON.parse(text), repository: "github:example/tenure" }));
  change("CHANGELOG.md", (text) => text.replace(/^## \d+\.\d+\.\d+.*$/m, `## ${version} (2026-12-01)`));
}

it("the repository lacks at most what the last step before a tag adds: an address, and a date", () => {
  for (const what of missingFor(`v${version}`, process.cwd()))
    expect(what).toMatch(/no repository|^CHANGELOG\.md has no/);
});

it("a prepared one lacks nothing", () => {
  prepare();
  expect(missingFor(`v${version}`, copy)).toEqual([]);
});

it("another tag, or none, is refused, with every place that has another version", () => {
  prepare();
  expect(missingFor("v99.0.0", copy).join("\n")).toMatch(
    /package\.json has[^]*tenure-server\/package\.json has[^]*Dockerfile[^]*compose\.yaml[^]*kustomization[^]*CHANGELOG[^]*frames\.jsonl/,
  );
  for (const tag of ["", version, "v1.0.0-rc.1", "v1"])
    expect(missingFor(tag, copy)).toEqual([expect.stringContaining("no tag")]);
});

it("a release whose formats are not stored is refused", () => {
  prepare();
  rmSync(join(copy, "test/compat", version, "nodes.json.gz"));
  expect(missingFor(`v${version}`, copy)).toEqual([`test/compat/${version}/nodes.json.gz does not exist`]);
});
