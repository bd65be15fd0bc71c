#!/usr/bin/env node
// `tenure`: finds the command and runs it. Each command is a folder, loaded when it is asked for, and gives an exit
// code; what a user got wrong and what the world refused are one line on stderr and an exit code of the registry.

import { existsSync, readFileSync } from "node:fs";
import { ERRORS, TenureError } from "../core/kit/errors.ts";
import { requireNode } from "../drivers/system/host.ts";
import { paintFor } from "./kit/colour.ts";
import { complaint, complaintLines } from "./kit/complaint.ts";
import { COMMANDS as DESCRIBED } from "./completion/table.ts";
import { EXIT_USAGE, suggestion, UsageError } from "./kit/flags.ts";
import { printed } from "./kit/print.ts";

/** It is for who has the repository, and packed with nothing (`files` of the two packages). */
const DEV = "dev";
const hasDev = existsSync(new URL(`./dev/command${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url));
const LISTED = DESCRIBED.filter(({ name }) => name !== DEV || hasDev);
const SUMMARIES = LISTED.map(({ name, summary }) => `  tenure ${name.padEnd(11)} ${summary}\n`);
const HELP = `tenure: leadership for services. At most one instance's writes count.

${SUMMARIES.join("")}
tenure COMMAND --help says more.
`;

type Command = (args: readonly string[]) => Promise<number>;

const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  run: async () => (await import("./run/command.ts")).run,
  scope: async () => (await import("./scope/command.ts")).scope,
  doctor: async () => (await import("./doctor/command.ts")).doctor,
  schema: async () => (await import("./schema/command.ts")).schema,
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
  completion: async () => (await import("./completion/command.ts")).completion,
  version: async () => version,
  "--version": async () => version,
  help: async () => help,
  "--help": async () => help,
  "-h": async () => help,
};

const EXIT_UNAVAILABLE = 69;

async function main(name: string | undefined, args: readonly string[]): Promise<number> {
  const paint = paintFor(process.stderr, process.env);
  if (name === undefined) {
    process.stderr.write(HELP);
    return EXIT_USAGE;
  }
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (load === undefined) {
    process.stderr.write(complaint("tenure", `there is no command ${JSON.stringify(name)}${hint(name)}`, paint));
    return EXIT_USAGE;
  }
  try {
    requireNode(manifest().engines.node.replace(">=", ""));
    return await (
      await load()
    )(args);
  } catch (error) {
    if (error instanceof UsageError) {
      process.stderr.write(complaint(`tenure ${name}`, `${error.message} (tenure ${name} --help)`, paint));
      return error.exitCode;
    }
    if (isMissingServer(error)) {
      const where =
        name === DEV
          ? "in Tenure's repository, and in no package: npm start there; here, `tenure server start` runs a node"
          : "in the package tenure-server: npm install --global tenure-server";
      process.stderr.write(`tenure: \`tenure ${name}\` is ${where}\n`);
      return EXIT_UNAVAILABLE;
    }
    if (!TenureError.is(error)) throw error;
    const tell = error.code === "CONFIG_INVALID" ? complaintLines : complaint;
    process.stderr.write(tell("tenure", error.message, paint));
    return ERRORS[error.code].exit;
  }
}

/** The library's package has this file, and not the servers; neither package has `dev`. */
function isMissingServer(error: unknown): boolean {
  const { code, url } = error as { readonly code?: unknown; readonly url?: unknown };
  return (
    code === "ERR_MODULE_NOT_FOUND" && typeof url === "string" && url.startsWith(new URL("./", import.meta.url).href)
  );
}

function hint(name: string): string {
  const near = suggestion(name, Object.keys(COMMANDS));
  return near === "" ? `; the commands are ${LISTED.map((one) => one.name).join(", ")}` : near;
}

/** Of the package that this file is in, the library's or the servers': each needs a Node of its own. */
function manifest(): { readonly version: string; readonly engines: { readonly node: string } } {
  return JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
}

async function version(): Promise<number> {
  return printed(`${manifest().version}\n`);
}

async function help(): Promise<number> {
  return printed(HELP);
}

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // `tenure scope list | head` has read enough.
  if (error.code === "EPIPE") process.exit();
  throw error;
});
const [name, ...args] = process.argv.slice(2);
process.exitCode = await main(name, args);
// Whatever socket or timer a command left open must not keep the process, and the scope's observers, waiting.
process.stdout.write("", () => process.exit());
