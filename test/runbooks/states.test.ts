// Whatever a node, a member or a job can be said to be, a runbook names: whoever is woken by it finds the page with that word.

import { expect, it } from "vitest";
import { HEALTHS } from "../../src/cli/cluster/view.ts";
import { HealthzAnswer } from "../../src/contract/answers.ts";
import { JobAnswer } from "../../src/contract/jobs/answers.ts";
import { runbooks } from "./documents.ts";

const BOOKS = new Map(runbooks().map(({ file, text }) => [file, text]));

/** Of a page, the first cells of its tables. */
function firstCells(file: string): string {
  return [...(BOOKS.get(file) ?? "").matchAll(/^ *\| (?!---|It says |Reason )(.*?) \|/gm)]
    .map(([, cell]) => cell)
    .join("\n");
}

function unnamed(names: readonly string[], text: string): string[] {
  return names.filter((name) => !text.includes(`\`${name}\``));
}

function constants(schema: unknown): string[] {
  return [...JSON.stringify(schema).matchAll(/"const":"([a-z_-]+)"/g)].map(([, name = ""]) => name);
}

it("every state of a member in `tenure cluster status` has a row on the page about a node that is down", () => {
  expect(HEALTHS).toContain("unauthenticated");
  expect(unnamed(HEALTHS, firstCells("cluster-node-down.md"))).toEqual([]);
});

it("every alert that a node can raise is named by a runbook", () => {
  const schema = JSON.stringify(HealthzAnswer.properties.alerts.items.properties.name);
  const raised = [...schema.matchAll(/"([a-z]+_[a-z_]+)"/g)].map(([, name = ""]) => name);
  expect(raised).toContain("loop_stalled");
  expect(unnamed(raised, [...BOOKS.values()].join("\n"))).toEqual([]);
});

it("every reason for which a job waits has a row on the page about jobs that wait, and no other has", () => {
  const cells = firstCells("jobs-wait.md");
  const reasons = constants(JobAnswer.properties.pending_reason);
  expect(reasons).toContain("cluster-paused");
  expect([...cells.matchAll(/`([a-z-]+)`/g)].map(([, name = ""]) => name).toSorted()).toEqual(reasons.toSorted());
});
