// The payload of a job of the kind exec: what `tenure job submit -- COMMAND` writes. Checked strictly, and every mistake is
// named at once: the same payload is as wrong in the next attempt.

import type { Json } from "../core/kit/json.ts";
import { QUOTED_LETTERS_MAX } from "./limits.ts";
import { JobError } from "./outcome.ts";

export interface ExecPayload {
  readonly command: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | null;
}

const KEYS = ["command", "env", "cwd"];

/** Throws a JobError that no retry repairs. */
export function readExecPayload(payload: Json): ExecPayload {
  if (typeof payload !== "object" || payload === null || Array.isArray(payload)) {
    throw wrong([`it must be an object such as {"command": ["make", "all"]}, not ${shown(payload)}`]);
  }
  const { command, env = {}, cwd = null, ...others } = payload as Readonly<Record<string, Json>>;
  const mistakes = [...commandMistakes(command), ...envMistakes(env), ...cwdMistakes(cwd)];
  for (const key of Object.keys(others)) mistakes.push(`there is no ${shown(key)}; there are ${KEYS.join(", ")}`);
  if (mistakes.length > 0) throw wrong(mistakes);
  return {
    command: command as unknown as ExecPayload["command"],
    env: env as Readonly<Record<string, string>>,
    cwd: cwd as string | null,
  };
}

function commandMistakes(command: Json | undefined): string[] {
  if (!Array.isArray(command) || command.length === 0) {
    return [`command must be a list of the program and its arguments, not ${shown(command)}`];
  }
  const found: string[] = [];
  command.forEach((word: Json, at) => {
    if (!isText(word)) found.push(`command[${at}] must be text without NUL, not ${shown(word)}`);
  });
  if (command[0] === "") found.push("command[0] must be a program, not empty");
  return found;
}

function envMistakes(env: Json): string[] {
  if (typeof env !== "object" || env === null || Array.isArray(env)) {
    return [`env must be an object of texts, not ${shown(env)}`];
  }
  const found: string[] = [];
  for (const [name, value] of Object.entries(env as Readonly<Record<string, Json>>)) {
    if (name === "" || /[=\0]/.test(name)) found.push(`env has the name ${shown(name)}; a name has no = and no NUL`);
    if (!isText(value)) found.push(`env.${name} must be text without NUL, not ${shown(value)}`);
  }
  return found;
}

function cwdMistakes(cwd: Json): string[] {
  return cwd === null || (isText(cwd) && cwd !== "") ? [] : [`cwd must be a directory, not ${shown(cwd)}`];
}

function isText(value: Json): value is string {
  return typeof value === "string" && !value.includes("\0");
}

function shown(value: Json | undefined): string {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return text.length > QUOTED_LETTERS_MAX ? `${text.slice(0, QUOTED_LETTERS_MAX)}…` : text;
}

function wrong(mistakes: readonly string[]): JobError {
  return new JobError(`The payload of this exec job is wrong: ${mistakes.join("; ")}.`, { retry: false });
}
