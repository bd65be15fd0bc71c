#!/usr/bin/env node
// `tenure` of the package tenure: the library's commands. The package tenure-server has a command of this name too, and in a project with
// both it depends on the package manager which one is linked. So this one is the servers' command, which has all, where that is installed.

import { LIBRARY_COMMANDS, runProgram } from "./program.ts";

if (hasServers()) {
  // @ts-expect-error The package is not installed in its own repository.
  await import("tenure-server/command");
} else await runProgram(LIBRARY_COMMANDS);

function hasServers(): boolean {
  try {
    return import.meta.resolve("tenure-server/command") !== "";
  } catch {
    return false;
  }
}
