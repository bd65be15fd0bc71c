// The audit as docs/server.md says that an operator reads it: its commands, on the log of a real server after an operator, and
// somebody who is none, have called.

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { blocksOf, commandsOf } from "../runbooks/documents.ts";
import { OPERATOR_KEY, startTenureCluster, VIEWER_KEY, waitFor } from "../servers/index.ts";
import { tenure } from "../cli/test-tenure.ts";

interface AuditLine {
  readonly phase: string;
  readonly who: string;
  readonly operation: string;
  readonly target: string | null;
  /** Of what has ended. */
  readonly outcome?: string;
}

test("who paused a queue, and who was refused, is found with the commands of docs/server.md", async () => {
  const [save, ...reads] = blocksOf(readFileSync("docs/server.md", "utf8"))
    .map(commandsOf)
    .find((commands) => commands.some((one) => one.includes('"audit":true')))!;
  expect(save).toMatch(/^journalctl --unit tenure-server .* > server\.log$/);
  const cluster = await startTenureCluster({ nodes: 1, prepare: (one) => one.configure({ log: { level: "error" } }) });
  try {
    const [node] = cluster.nodes;
    const pause = (key: string) => tenure("queue", "pause", "mail", "--url", node!.url, "--key", key);
    expect((await pause(VIEWER_KEY)).code).not.toBe(0);
    expect((await pause(OPERATOR_KEY)).code).toBe(0);
    await waitFor("the last line to be written", () => /"phase":"ended".*"outcome":"OK"/.test(node!.log()));
    writeFileSync(join(cluster.directory, "server.log"), node!.log());
    for (const command of reads) {
      const text = execFileSync("sh", ["-c", command], { cwd: cluster.directory, encoding: "utf8" });
      const lines = text
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as AuditLine);
      const told = lines.map(({ phase, who, operation, target, outcome = "-" }) => [
        phase,
        who,
        operation,
        target,
        outcome,
      ]);
      expect(told).toEqual([
        ["ended", "the-viewer", "pauseQueue", null, "PERMISSION_DENIED"],
        ["begun", "the-operator", "pauseQueue", "mail", "-"],
        ["ended", "the-operator", "pauseQueue", "mail", "OK"],
      ]);
    }
  } finally {
    await cluster.end();
  }
});
