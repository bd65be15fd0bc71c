// A list as it is printed: a table for people, one JSON object with all of it, or one JSON object on a line for each.

import { assertNever } from "../../contract/errors.ts";
import { json, type Output } from "./output.ts";

/** `field` is the name of the array in the one object of `-o json`. */
export function listText(output: Output, field: string, objects: readonly object[], table: () => string): string {
  switch (output) {
    case "table":
      return table();
    case "json":
      return json({ [field]: objects });
    case "jsonl":
      return objects.map(json).join("");
    default:
      return assertNever(output, "output");
  }
}
