// `tenure key create|list|revoke`: API keys that the cluster itself keeps. A key is made here and printed once; only its hash
// travels and is kept, on every node.
//
// Whoever makes keys must be an operator, so the first key can't be made this way: `--offline` makes one for a node's
// configuration file and asks nobody.
//
// On stdout is the key and nothing else, for `KEY=$(tenure key create …)`; what people should know about it is on stderr.

import { KEY_NAME } from "../../contract/names.ts";
import { CONNECTION_KINDS } from "../kit/connection-help.ts";
import { kindsOf, verbsOf } from "../kit/description.ts";
import { KEY } from "./help.ts";
import { type KeyView, newKey, type NewKey } from "../../client/index.ts";
import { API_ROLES, type ApiRole } from "../../core/kit/api-role.ts";
import { assertNever } from "../../contract/errors.ts";
import { clientOf, FRESH, readConnection } from "../connection/connection.ts";
import { type Paint } from "../kit/colour.ts";
import { oneOf, parseFlags, UsageError } from "../kit/flags.ts";
import { isoTime, json, printable, table, withLongOutput } from "../kit/output.ts";
import { chosen } from "../kit/words.ts";
import { printed, stdoutPaint } from "../kit/print.ts";

const VERBS = verbsOf(KEY);
/** Of a name that nobody chose. */
const SUFFIX_LETTERS = 8;

const KINDS = { ...CONNECTION_KINDS, ...kindsOf(KEY) };

export type KeyStep =
  | { readonly verb: "create"; readonly role: ApiRole; readonly name: string | null; readonly isOffline: boolean }
  | { readonly verb: "list" }
  | { readonly verb: "revoke"; readonly name: string };

export async function key(args: readonly string[]): Promise<number> {
  const { values, words, rest } = parseFlags(withLongOutput(args), KINDS);
  if (values.help !== undefined) return printed(KEY.help);
  const step = readStep([...words, ...(rest ?? [])], values);
  const connection = await readConnection(values, process.env);
  const isJson = connection.output === "json";
  switch (step.verb) {
    case "create": {
      const made = await newKey();
      const request = { name: step.name ?? `${step.role}-${made.sha256.slice(0, SUFFIX_LETTERS)}`, role: step.role };
      if (step.isOffline) return printOffline(request, made, isJson);
      return printCreated(await clientOf(connection).keys.create(request, { key: made }), made, isJson);
    }
    case "list": {
      const keys = await clientOf(connection).keys.list(FRESH);
      return printed(isJson ? json({ keys: keys.map(keyObject) }) : keysTable(keys, stdoutPaint()));
    }
    case "revoke":
      await clientOf(connection).keys.revoke(step.name);
      return printed(isJson ? json({ name: step.name }) : `${step.name} is let in no more\n`);
    default:
      return assertNever(step, "key");
  }
}

export function readStep(
  words: readonly string[],
  values: Partial<Record<"role" | "name" | "offline", string>>,
): KeyStep {
  const verb = chosen(words[0], VERBS);
  const stray = (["role", "name", "offline"] as const).find((flag) => values[flag] !== undefined && verb !== "create");
  if (stray !== undefined) throw new UsageError(`--${stray} belongs to create, not to ${verb}`);
  const [, word, more] = words;
  if (verb === "revoke") {
    if (word === undefined) throw new UsageError("revoke needs a name: tenure key revoke NAME");
    if (more !== undefined) throw new UsageError(`revoke takes one name, not ${words.length - 1}`);
    return { verb, name: nameOf("revoke", word) };
  }
  if (word !== undefined) {
    const where = verb === "create" ? "; the name is --name NAME" : "";
    throw new UsageError(`${verb} takes no ${JSON.stringify(word)}${where}`);
  }
  if (verb === "list") return { verb };
  if (values.role === undefined) throw new UsageError(`create needs a role: --role ${API_ROLES.join("|")}`);
  return {
    verb,
    role: oneOf("--role", values.role, API_ROLES),
    name: values.name === undefined ? null : nameOf("--name", values.name),
    isOffline: values.offline !== undefined,
  };
}

function nameOf(flag: string, text: string): string {
  if (KEY_NAME.test(text) && text !== "anonymous") return text;
  const why = text === "anonymous" ? "; that is what callers without a key are called" : "";
  throw new UsageError(`${flag} takes up to 64 letters, digits, '.', '_' and -, not ${JSON.stringify(text)}${why}`);
}

function printCreated(view: KeyView, { secret }: NewKey, isJson: boolean): number {
  if (isJson) return printed(json({ ...keyObject(view), key: secret }));
  process.stderr.write(`${view.name}, ${view.role}; keep it, nobody can show it again:\n`);
  return printed(`${secret}\n`);
}

function printOffline(request: Pick<KeyView, "name" | "role">, { secret, sha256 }: NewKey, isJson: boolean): number {
  const entry = { name: request.name, sha256, role: request.role };
  if (isJson) return printed(json({ ...request, key: secret, entry }));
  process.stderr.write(
    `put this into the configuration of every node, and start it anew (in JSON: into "keys", as an object):\n` +
      `[[keys]]\nname = ${JSON.stringify(entry.name)}\nsha256 = "${sha256}"\nrole = "${entry.role}"\n` +
      `${request.name}, ${request.role}; keep it, it stands nowhere else:\n`,
  );
  return printed(`${secret}\n`);
}

function keyObject({ name, role, createdAtMs, createdBy }: KeyView) {
  return { name, role, created_at: isoTime(createdAtMs), created_by: createdBy };
}

function keysTable(keys: readonly KeyView[], paint: Paint): string {
  const rows = keys.map((one) => [one.name, one.role, isoTime(one.createdAtMs), one.createdBy].map(printable));
  return table(["NAME", "ROLE", "CREATED", "BY"], rows, paint);
}
