#!/usr/bin/env node
// `tenure` of the package tenure-server, and of the repository: every command.

import { LIBRARY_COMMANDS, runProgram } from "./program.ts";

await runProgram({
  ...LIBRARY_COMMANDS,
  server: async () => (await import("./server/command.ts")).server,
  cluster: async () => (await import("./cluster/command.ts")).cluster,
  member: async () => (await import("./member/command.ts")).member,
  key: async () => (await import("./key/command.ts")).key,
  job: async () => (await import("./job/command.ts")).job,
  agent: async () => (await import("./agent/command.ts")).agent,
  queue: async () => (await import("./queue/command.ts")).queue,
  schedule: async () => (await import("./schedule/command.ts")).schedule,
  value: async () => (await import("./value/command.ts")).value,
  event: async () => (await import("./event/command.ts")).event,
  mesh: async () => (await import("./mesh/command.ts")).mesh,
  tc: async () => (await import("./tc/command.ts")).tc,
  txn: async () => (await import("./txn/command.ts")).txn,
  cert: async () => (await import("./cert/command.ts")).cert,
  config: async () => (await import("./config/command.ts")).config,
  support: async () => (await import("./support/command.ts")).support,
  dev: async () => (await import("./dev/command.ts")).dev,
});
