// Names of options that do not exist, refused: TypeScript sees them, plain JavaScript would run on with a default instead of
// what was meant.

import { TenureError } from "./errors.ts";
import { sentenceEnd, suggestion } from "./suggestion.ts";

/** `what` is the function that was called. Throws CONFIG_INVALID. */
export function refuseUnknownOptions(what: string, options: object, known: Readonly<Record<string, true>>): void {
  const names = Object.keys(known);
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(known, name));
  if (unknown === undefined) return;
  const near = suggestion(unknown, names);
  const text = `${what}: there is no option ${JSON.stringify(unknown)}${near === "" ? `; there are ${names.join(", ")}` : near}`;
  throw new TenureError("CONFIG_INVALID", `${text}${sentenceEnd(text)}`);
}
