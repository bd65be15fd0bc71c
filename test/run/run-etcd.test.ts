// `tenure run` on a real etcd: the same command, another backend.

import { describe, expect, it } from "vitest";
import { etcdPath, startEtcd, waitFor } from "../servers/index.ts";
import { exits, livingIn } from "./test-commands.ts";
import { Instance, Tenure } from "./test-run.ts";

const SLACK_MS = 1_000;

describe.skipIf(etcdPath() === undefined)("with etcd", () => {
  it("runs while leading, and another takes over after a kill and after a freeze", async () => {
    const etcd = await startEtcd();
    const backend = `etcd://127.0.0.1:${etcd.port}?tenure_server_timeout_ms=2000`;
    const flags = ["--scope", "run-etcd", "--backend", backend, "--grace", "300ms"];
    const instances: Instance[] = [];
    try {
      const first = new Tenure(["run", ...flags, "--", ...exits(3)]);
      expect(await first.exitCode()).toBe(3);

      const killed = Instance.ticking(flags, "SIGTERM");
      instances.push(killed);
      await killed.ticks();
      const second = Instance.ticking(flags, "SIGTERM");
      instances.push(second);
      await second.tenure.said(/waiting: .* leads "run-etcd" in epoch \d+/);
      const killedMs = Date.now();
      killed.tenure.kill("SIGKILL");
      await second.ticks();
      expect(killed.lastMs).toBeLessThan(killedMs + SLACK_MS);

      const third = Instance.ticking(flags);
      instances.push(third);
      await third.tenure.said(/waiting:/);
      second.tenure.kill("SIGSTOP");
      await third.ticks();
      expect(second.lastMs).toBeLessThan(third.starts[0]!.atMs);
      expect(livingIn(second.group)).toEqual([]);
      const epochs = instances.map((one) => Number(one.starts[0]?.epoch));
      expect(epochs).toEqual([...epochs].sort((a, b) => a - b));
      expect(new Set(epochs).size).toBe(3);
    } finally {
      for (const one of instances) one.tenure.kill("SIGKILL");
      await waitFor("everybody to be gone", () => instances.every((one) => !one.tenure.isRunning));
      await etcd.end();
    }
  });
});
