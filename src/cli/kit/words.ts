// What commands about named things share: the words behind their verb, the flags that belong to one verb alone, and the thing
// of a name among all that there are.

import { TenureError } from "../../contract/errors.ts";
import { suggestion, UsageError } from "./flags.ts";

/** The verb that a command line begins with. */
export function chosen<T extends string>(word: string | undefined, verbs: readonly T[], before = ""): T {
  if (word === undefined) throw new UsageError(`say what to do: ${verbs.map((verb) => before + verb).join(", ")}`);
  const verb = verbs.find((one) => one === word);
  if (verb !== undefined) return verb;
  const near = suggestion(word, verbs);
  throw new UsageError(
    `there is no ${JSON.stringify(before + word)}${near === "" ? `; give ${verbs.join(", ")}` : near}`,
  );
}

/** `words` are the verb and what follows it: `pause NAME`. */
export function oneName(command: string, words: readonly string[]): string {
  const [verb = "", name, more] = words;
  if (name === undefined || name === "") throw new UsageError(`${verb} needs a name: tenure ${command} ${verb} NAME`);
  if (more !== undefined) throw new UsageError(`${verb} takes one name, not ${words.length - 1}`);
  return name;
}

export function noName([verb = "", word]: readonly string[]): void {
  if (word !== undefined) throw new UsageError(`${verb} takes no ${JSON.stringify(word)}`);
}

/** These flags mean nothing with another verb, and whoever gives them means something. */
export function refuseStray<Flag extends string>(
  values: Partial<Record<Flag, string>>,
  flags: readonly Flag[],
  owner: string,
  verb: string,
): void {
  const stray = verb === owner ? undefined : flags.find((flag) => values[flag] !== undefined);
  if (stray !== undefined) throw new UsageError(`--${stray} belongs to ${owner}, not to ${verb}`);
}

export function named<T extends { readonly name: string }>(what: string, name: string, all: readonly T[]): T {
  const found = all.find((one) => one.name === name);
  if (found !== undefined) return found;
  const near = suggestion(
    name,
    all.map((one) => one.name),
  );
  throw new TenureError("NOT_FOUND", `there is no ${what} ${JSON.stringify(name)}${near === "" ? "." : near}`);
}
