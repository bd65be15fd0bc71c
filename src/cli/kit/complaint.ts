// A mistake as it reaches stderr: who says it, and what. One line; a configuration's mistakes are a line each, and a line of a file
// stands below what is wrong with it. What others wrote must not move the cursor.

import type { Paint } from "./colour.ts";
import { printable } from "./output.ts";

/** `who` is `tenure`, or `tenure job`. */
export function complaint(who: string, message: string, paint: Paint): string {
  return `${paint("red", `${who}:`)} ${printable(message.replaceAll(/\s*\n\s*/g, " "))}\n`;
}

/** The same, where the message's lines are meant. */
export function complaintLines(who: string, message: string, paint: Paint): string {
  const [head = "", ...lines] = message.trimEnd().split("\n");
  return `${paint("red", `${who}:`)} ${[head, ...lines].map(printable).join("\n")}\n`;
}

export function warningText(message: string, paint: Paint): string {
  return `${paint("yellow", "tenure: warning:")} ${printable(message.replaceAll(/\s*\n\s*/g, " "))}\n`;
}
