// What the doctor found, and its SQL run as printed.

import { expect } from "vitest";
import { examine } from "../../src/cli/doctor/command.ts";
import { type Check, reportText } from "../../src/cli/doctor/report.ts";
import { run } from "./test-tenure.ts";

export class Report {
  readonly text: string;
  readonly checks: readonly Check[];

  constructor(where: string, checks: readonly Check[]) {
    this.text = reportText(where, checks);
    this.checks = checks;
  }

  row(name: string): Check {
    const found = this.checks.find((check) => check.name === name);
    if (found === undefined) throw new Error(`no row "${name}" in ${this.text}`);
    return found;
  }

  /** Those that are not ok, as `name: level`. A latency that is only a warning is not listed: on a busy machine it is true. */
  get complaints(): string[] {
    const found = this.checks.filter((check) => check.level !== "ok").map(({ name, level }) => `${name}: ${level}`);
    return found.filter((complaint) => complaint !== "latency: warning");
  }

  /** Every statement, cut from the printed text as one would with a mouse. */
  async mend(adminUrl: string): Promise<void> {
    const statements = [...this.text.matchAll(/^  sql:   (.*)$/gm)].map(([, statement = ""]) => statement);
    expect(statements.length, "there is SQL that mends it").toBeGreaterThan(0);
    await run(adminUrl, ...statements);
  }
}

/** In this process: what the command adds is printing and an exit code, and those have tests of their own. */
export async function doctor(url: string, scope?: string): Promise<Report> {
  const { where, checks } = await examine(url, scope);
  return new Report(where, checks);
}
