// What `tenure` of both packages is: finds the command and runs it. Each command is a folder, loaded when it is asked for, and gives
// an exit code; what a user got wrong and what the world refused are one line on stderr and an exit code of the registry.

import { readFileSync } from "node:fs";
import { ERRORS, TenureError } from "../core/kit/errors.ts";
import { requireNode } from "../drivers/system/host.ts";
import { paintFor } from "./kit/colour.ts";
import { complaint, complaintLines } from "./kit/complaint.ts";
import { COMMANDS as DESCRIBED } from "./completion/table.ts";
import { EXIT_USAGE, suggestion, UsageError } from "./kit/flags.ts";
import { printed } from "./kit/print.ts";

const SUMMARIES = DESCRIBED.map(({ name, summary }) => `  tenure ${name.padEnd(11)} ${summary}\n`);
const HELP = `tenure: leadership for services. At most one instance's writes count.

${SUMMARIES.join("")}
tenure COMMAND --help says more.
`;

type Command = (args: readonly string[]) => Promise<number>;
export type Commands = Readonly<Record<string, () => Promise<Command>>>;

/** What both packages have. */
export const LIBRARY_COMMANDS: Commands = {
  run: async () => (await import("./run/command.ts")).run,
  scope: async () => (await import("./scope/command.ts")).scope,
  doctor: async () => (await import("./doctor/command.ts")).doctor,
  schema: async () => (await import("./schema/command.ts")).schema,
  completion: async () => (await import("./completion/command.ts")).completion,
  version: async () => version,
  "--version": async () => version,
  help: async () => help,
  "--help": async () => help,
  "-h": async () => help,
};

const EXIT_UNAVAILABLE = 69;

/** Reads the command line, and ends the process when its command has ended. */
export async function runProgram(commands: Commands): Promise<void> {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    // `tenure scope list | head` has read enough.
    if (error.code === "EPIPE") process.exit();
    throw error;
  });
  const [name, ...args] = process.argv.slice(2);
  process.exitCode = await main(commands, name, args);
  // Whatever socket or timer a command left open must not keep the process, and the scope's observers, waiting.
  process.stdout.write("", () => process.exit());
}

async function main(commands: Commands, name: string | undefined, args: readonly string[]): Promise<number> {
  const paint = paintFor(process.stderr, process.env);
  if (name === undefined) {
    process.stderr.write(HELP);
    return EXIT_USAGE;
  }
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
  try {
    if (load !== undefined || DESCRIBED.some((one) => one.name === name))
      requireNode(manifest().engines.node.replace(">=", ""));
    if (load !== undefined) return await (await load())(args);
  } catch (error) {
    if (error instanceof UsageError) {
      process.stderr.write(complaint(`tenure ${name}`, `${error.message} (tenure ${name} --help)`, paint));
      return error.exitCode;
    }
    if (!TenureError.is(error)) throw error;
    const tell = error.code === "CONFIG_INVALID" ? complaintLines : complaint;
    process.stderr.write(tell("tenure", error.message, paint));
    return ERRORS[error.code].exit;
  }
  if (DESCRIBED.some((one) => one.name === name)) {
    process.stderr.write(
      `tenure: \`tenure ${name}\` is in the package tenure-server: npm install --global tenure-server\n`,
    );
    return EXIT_UNAVAILABLE;
  }
  const near = suggestion(name, [...DESCRIBED.map((one) => one.name), "help"]);
  const hint = near === "" ? `; the commands are ${DESCRIBED.map((one) => one.name).join(", ")}` : near;
  process.stderr.write(complaint("tenure", `there is no command ${JSON.stringify(name)}${hint}`, paint));
  return EXIT_USAGE;
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
