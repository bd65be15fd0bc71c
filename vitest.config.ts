import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { COMPILE_CACHE } from "./test/servers/compile-cache.ts";

/** These judge times, or use both cores by themselves: each has the machine alone. */
const ALONE = [
  "test/chaos*.test.ts",
  "test/chaos/*.test.ts",
  "test/sim*.test.ts",
  "test/etcd/faults.test.ts",
  "test/postgres/freeze.test.ts",
  "test/servers-backend/failover.test.ts",
  "test/wire/gone.test.ts",
  "test/wire/messages.test.ts",
];

/** Minutes of real processes: npm run test:long, before an issue is called resolved (CONTRIBUTING.md). No part of .ci/run. */
const LONG = [
  "test/architecture/how-to-add.test.ts",
  "test/bench.test.ts",
  "test/bench-jobs.test.ts",
  "test/sim-long.test.ts",
  "test/chaos-cluster.test.ts",
  "test/archipelago/*.test.ts",
  "test/chaos/{jobs,mesh,paused-leader,servers-gate,tc,txn}.test.ts",
  "test/etcd/tokens.test.ts",
  "test/postgres/{outcomes,poll-lost-session,restored}.test.ts",
  "test/postgres-server/*.test.ts",
  "test/postgres-log/*.test.ts",
  "test/sqlite/*.test.ts",
  "test/server/history*.test.ts",
  "test/server/{certificates-runbook,clocks,damage,disk-full,drain,failures,founding,members,partitions,rebuild,recovery,restore-kill,restore-paused,revoked-certificates,rewritten,rolling-restart,schedules,schemes,scopes-expire,strangers,unauthenticated,unknown-keys}.test.ts",
  "test/mesh/{cut-history,gate,leave,receipts-{damage,holes},registry-cluster,restored-disk,return,state,tls}.test.ts",
  "test/coordinators/page.test.ts",
  "test/transactions/{move-workload,page}.test.ts",
  "test/values/{page,servers,upgrade}.test.ts",
  "test/wire/{frozen,peers}.test.ts",
  "test/servers-backend/{cluster,recovered,values}.test.ts",
  "test/readme/survives.test.ts",
  "test/run/frozen-guard.test.ts",
  "test/api/fuzz.test.ts",
  "test/api/real-*.test.ts",
  "test/cli/{terminal,toml-server}.test.ts",
  "test/client/{agent-process,transactions}.test.ts",
  "test/adapters/{adapters,careless,survival}.test.ts",
  "test/agent/*.test.ts",
  "test/processes/*.test.ts",
  "test/supervisor/*.test.ts",
  "test/demo-{ends,failover,sites}.test.ts",
  "test/cli/{job,steering,support}.test.ts",
  "test/compat/compat.test.ts",
  "test/conformance/{node-controller-guards,node-controller-postgres,postgres-poll,quorum-real-time}.test.ts",
  "test/health/elections-after-outage.test.ts",
  "test/maelstrom/linearizable.test.ts",
  "test/{binary,install,runtimes}.test.ts",
  "test/deploy/{backup,containers,image,kubernetes,promtool,shared-configuration,units}.test.ts",
  "test/runbooks/{islands,run,transactions}.test.ts",
  "test/web/*.test.ts",
];

/** A second is the default, which a busy machine may take for anything. */
const PATIENT = { poll: { timeout: 30_000 } };

/** For what tests start: the commands, the servers, the examples. */
const COMPILED = { NODE_COMPILE_CACHE: COMPILE_CACHE };

/** Examples import the library by its name, as its users do. */
const BY_NAME = {
  alias: [{ find: /^tenure\/([a-z-]+)$/, replacement: fileURLToPath(new URL("src/entry/$1.ts", import.meta.url)) }],
};

// Four projects: `unit` is next to the code (npm run test:unit, 20 s); `whole` tests the repository, its tools, real servers and
// processes, two files at once; `alone` comes after it, one file after the other; `long` is not part of npm test, which is to end
// within ten minutes.
export default defineConfig({
  test: {
    allowOnly: false,
    reporters: ["default", "./scripts/counts-reporter.ts"],
    projects: [
      // Pure code keeps no state between files, so two processes run all of them: one for each file would take longer than the tests.
      {
        test: {
          name: "unit",
          expect: PATIENT,
          include: ["src/**/*.test.ts", "web/src/**/*.test.ts"],
          setupFiles: ["test/property-seed.ts"],
          // None takes more than a second of the processor's time; on a machine with twenty others at work that was more than ten.
          testTimeout: 60_000,
          isolate: false,
          // Nothing here needs Vite: Node reads the sources by itself, and what Vite took for that was a tenth of the processor's time.
          experimental: { viteModuleRunner: false, nodeLoader: false },
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        resolve: BY_NAME,
        test: {
          name: "whole",
          expect: PATIENT,
          env: COMPILED,
          include: ["test/**/*.test.ts"],
          exclude: [...ALONE, ...LONG],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: "alone",
          expect: PATIENT,
          env: COMPILED,
          include: ALONE,
          exclude: LONG,
          testTimeout: 120_000,
          hookTimeout: 120_000,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          name: "long",
          expect: PATIENT,
          env: COMPILED,
          include: LONG,
          testTimeout: 120_000,
          hookTimeout: 120_000,
          maxWorkers: 1,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
