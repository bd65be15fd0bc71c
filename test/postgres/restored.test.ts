// A database whose files are restored from an older copy under electors that run, one that leads and one that waits: the server has
// forgotten epochs that were in force. Whoever knows of them does not lead in a lower one.

import { rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { copyDirectory, removeDirectory, temporaryDirectory } from "../servers/directories.ts";
import { startPostgres, waitFor } from "../servers/index.ts";
import { serverAccount } from "../servers/server-process.ts";
import { Candidate, led } from "./test-elector.ts";

test.each(["block", "poll"] as const)(
  "a restored database (%s): the leader and the waiter refuse lower epochs and say why; a process that starts anew leads",
  async (wait) => {
    const server = await startPostgres({ settings: { fsync: "off" } });
    const base = await temporaryDirectory("backup", serverAccount);
    const candidates: Candidate[] = [];
    onTestFinished(async () => {
      await Promise.all(candidates.map((one) => one.close()));
      await server.end();
      await removeDirectory(base);
    });
    const candidate = (): Candidate => {
      const one = new Candidate("restored", { url: server.url(), wait });
      candidates.push(one);
      return one;
    };
    const first = candidate();
    const { epoch: early } = await led([first]);
    await server.stop();
    await copyDirectory(server.dataDirectory, join(base, "data"), serverAccount);
    await server.start();
    await led([first], early);
    // Many terms, in short: a row of the state may go up.
    await server.query("update tenure_leader_state set epoch = epoch + 100");
    const { epoch: late } = await led([first], early + 100);
    const waiter = candidate();
    // It has looked at the scope before it asks for the lock.
    await waitFor("the waiter to ask for the lock", async () => {
      const text =
        "select from pg_stat_activity where query ~ 'tenure_wait|pg_try_advisory_lock' and pid <> pg_backend_pid()";
      return (await server.query(text)).length > 0;
    });
    await server.stop();
    await rm(server.dataDirectory, { recursive: true });
    await copyDirectory(join(base, "data"), server.dataDirectory, serverAccount);
    await server.start();
    await waitFor("both to refuse", () => first.refusal !== undefined && waiter.refusal !== undefined);
    const message = expect.stringContaining("restored from an older state") as string;
    for (const { refusal } of [first, waiter])
      expect(refusal).toMatchObject({ code: "CLUSTER_MISMATCH", retryable: false, message });
    const { epoch: anew } = await led([candidate()]);
    expect(anew).toBeLessThan(late);
    expect([first.epochs.at(-1), waiter.epochs]).toEqual([late, []]);
  },
  120_000,
);
