// Prometheus's own tool on deploy/prometheus: the rules and the scrape configuration are valid, and every alert fires when it
// should and not before (rules.test.yaml). Skips itself where there is no promtool (Debian's package `prometheus` has it).

import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const PROMTOOL = process.env["PROMTOOL"] ?? "promtool";
const isThere = spawnSync(PROMTOOL, ["--version"]).status === 0;
if (!isThere) console.log("promtool is not here: the rules of Prometheus are not tried (apt-get install prometheus)");

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "tenure-promtool-"));
  cpSync("deploy/prometheus", directory, { recursive: true });
});
afterAll(() => rmSync(directory, { recursive: true }));

function promtool(...args: string[]): { status: number | null; text: string } {
  const { status, stdout, stderr } = spawnSync(PROMTOOL, args, { cwd: directory, encoding: "utf8" });
  return { status, text: `${stdout}${stderr}` };
}

describe.skipIf(!isThere)("promtool", () => {
  it("takes the rules", () => {
    expect(promtool("check", "rules", "rules.yaml")).toMatchObject({ status: 0 });
  });

  it("takes the scrape configuration, with the files that it names", () => {
    const text = readFileSync(join(directory, "scrape.yaml"), "utf8").replaceAll("/etc/prometheus/tenure", directory);
    for (const file of ["ca.crt", "viewer-prometheus.crt", "viewer-prometheus.key"])
      writeFileSync(join(directory, file), "");
    writeFileSync(join(directory, "scrape.yaml"), text);
    expect(promtool("check", "config", "scrape.yaml")).toMatchObject({ status: 0 });
  });

  it("sees every alert fire when it should, and not before", () => {
    expect(promtool("test", "rules", "rules.test.yaml")).toMatchObject({ status: 0 });
  });

  it("sees an alert that fires too late", () => {
    const rules = readFileSync(join(directory, "rules.yaml"), "utf8");
    expect(rules).toContain("for: 30s");
    writeFileSync(join(directory, "rules.yaml"), rules.replace("for: 30s", "for: 300s"));
    const { status, text } = promtool("test", "rules", "rules.test.yaml");
    expect(status).toBe(1);
    expect(text).toContain("TenureNoLeader");
  });
});
