// An etcd whose past changes under electors that run: restored from a snapshot, its revisions go back, and epochs with them.

import { execFile } from "node:child_process";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { createElector, type Elector, type Transition } from "../../src/entry/index.ts";
import { etcd, type EtcdTerm } from "../../src/entry/etcd.ts";
import { type EtcdServer, startEtcd, waitFor } from "../servers/index.ts";
import { findProgram } from "../servers/server-process.ts";
import { api, freshScope, noEtcd, QUICK } from "./test-seat.ts";

const etcdctl = findProgram("etcdctl");
const TTL_SECONDS = 2;

async function control(...args: readonly string[]): Promise<void> {
  await promisify(execFile)(etcdctl ?? "", args, { env: { PATH: process.env["PATH"], ETCDCTL_API: "3" } });
}

/** Stops etcd, and starts it with what it was when the snapshot was taken. */
async function restore(server: EtcdServer, snapshot: string): Promise<void> {
  await server.kill();
  await rm(server.dataDirectory, { recursive: true });
  await control(
    "snapshot",
    "restore",
    snapshot,
    "--data-dir",
    server.dataDirectory,
    "--name",
    "tenure",
    ...server.cluster,
  );
  await server.start();
}

interface Watched {
  readonly elector: Elector<EtcdTerm>;
  readonly transitions: Transition[];
  readonly warnings: string[];
}

function electorOf(server: EtcdServer, scope: string): Watched {
  const transitions: Transition[] = [];
  const warnings: string[] = [];
  const warn = (_: unknown, message: string): void => void warnings.push(message);
  const elector = createElector({
    scope,
    backend: etcd({ endpoints: server.endpoint, ttlSeconds: TTL_SECONDS }),
    logger: { info: () => undefined, warn, error: warn },
    onTransition: (one) => void transitions.push(one),
  });
  onTestFinished(() => elector.close());
  return { elector, transitions, warnings };
}

describe.skipIf(noEtcd || etcdctl === undefined)("an etcd that is restored from an older snapshot", () => {
  test.each(["before the leader led", "while the leader led"])(
    "of %s: nobody who knows a higher revision leads or goes on leading, and all say why",
    async (when) => {
      const server = await startEtcd(QUICK);
      onTestFinished(() => server.end());
      const scope = freshScope();
      const snapshot = join(server.dataDirectory, "..", "snapshot.db");
      const save = (): Promise<void> => control("--endpoints", server.endpoint, "snapshot", "save", snapshot);
      const others = async (): Promise<void> => {
        for (let put = 0; put < 50; put++) await api(server.endpoint, "kv/put", { key: btoa("x"), value: btoa("x") });
      };
      if (when === "before the leader led") await save();
      await others();
      const leader = electorOf(server, scope);
      const follower = electorOf(server, scope);
      const term = await leader.elector.acquire();
      if (when === "while the leader led") await save();
      await others();
      const waits = follower.elector.acquire().catch((error: unknown) => error);
      await waitFor("the follower to know", async () => (await follower.elector.leader())?.epoch === term.epoch);
      await leader.elector.leader();
      await restore(server, snapshot);
      expect(["lease-gone", "expired", "superseded"]).toContain(await term.ended);
      for (const error of [await waits, await leader.elector.acquire().catch((reason: unknown) => reason)]) {
        expect(error).toMatchObject({ code: "CLUSTER_MISMATCH", retryable: false });
        expect(String(error)).toContain("restored from an older state");
      }
      // A process that starts anew knows of nothing: it leads in the restored history, in an epoch of that.
      const fresh = await electorOf(server, scope).elector.acquire();
      expect(fresh.epoch).toBeLessThan(term.epoch + 50);
      for (const { transitions } of [leader, follower]) {
        const epochs = transitions.filter((one) => one.kind === "leading").map(({ epoch }) => epoch);
        expect(epochs.filter((epoch) => epoch !== term.epoch)).toEqual([]);
      }
    },
    120_000,
  );
});
