// docs/reference/cli.md against the commands about Tenure's own servers: the fields of each `-o json`.

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { peerKey } from "../../src/core/kit/ids.ts";
import { configurationOf } from "../../src/core/raft/index.ts";
import { snapshotObject } from "../../src/cli/cluster/snapshot.ts";
import { electionObject, statusObject, statusOf } from "../../src/cli/cluster/view.ts";
import { answers, viewOf } from "../../src/cli/cluster/test-cluster.ts";

const DOCUMENT = readFileSync("docs/reference/cli.md", "utf8");

function section(heading: string): string {
  const start = DOCUMENT.indexOf(`\n${heading}\n`);
  if (start < 0) throw new Error(`docs/reference/cli.md has no ${heading}`);
  const level = /^#+/.exec(heading)![0].length;
  const rest = DOCUMENT.slice(start + heading.length + 1);
  const end = rest.search(new RegExp(`\n#{1,${level}} `));
  return end < 0 ? rest : rest.slice(0, end);
}

function documented(heading: string): string[] {
  const text = section(heading);
  const table = text.slice(text.indexOf("| Field |")).split("\n\n")[0] ?? "";
  const rows = table.trimEnd().split("\n").slice(2);
  return rows.map((row) => /^\| `([^`]+)`/.exec(row)?.[1] ?? row).toSorted();
}

function fieldsOf(value: unknown, prefix = ""): string[] {
  if (Array.isArray(value)) return [...new Set(value.flatMap((one) => fieldsOf(one, `${prefix}[]`)))].toSorted();
  if (typeof value !== "object" || value === null) return [prefix];
  const fields = Object.entries(value).flatMap(([name, inner]) =>
    fieldsOf(inner, prefix === "" ? name : `${prefix}.${name}`),
  );
  return [...new Set(fields)].toSorted();
}

const alert = { name: "disk_low", severity: "warning", message: "", sinceWallMs: 0, nodeId: null } as const;
const votes = [{ voter: "n1@1a", granted: true }];
const election = {
  term: 1,
  stage: "vote",
  reason: "timeout",
  candidate: "n1@1a",
  candidates: ["n1@1a"],
  votes,
  startedAtMs: 0,
  durationMs: 1,
  result: "won",
} as const;

describe("the fields of -o json", () => {
  it("of cluster status are those of the document", () => {
    const view = viewOf("n1", { alerts: [alert], ancestors: ["c-0"] });
    const found = [
      ...answers(view, viewOf("n2"), viewOf("n3"), viewOf("n4")),
      { url: "http://stranger", view: null, why: "down", code: null } as const,
    ];
    expect(fieldsOf(statusObject(statusOf(found)))).toEqual(documented("### `tenure cluster status -o json`"));
  });

  it("of cluster elections are those of the document", () => {
    const object = { elections: [electionObject(election)] };
    expect(fieldsOf(object)).toEqual(documented("### `tenure cluster elections -o json`"));
  });

  it("of cluster snapshot are those of the document", () => {
    const voters = [peerKey("n1", "1a")];
    const configuration = { ...configurationOf(voters), learners: [peerKey("n2", "2a")] };
    const object = snapshotObject({
      file: "f",
      bytes: 1,
      index: 1,
      term: 1,
      configuration,
      url: null,
      unreported: null,
      isFollowers: false,
    });
    expect(fieldsOf(object)).toEqual(documented("### `tenure cluster snapshot save FILE -o json`"));
  });
});
