// What was found in a place where something else is wanted, as a message tells it: "must be …, found …". A text is shown only
// where no secret can stand, is short, and looks like no URL with a password; otherwise its length is told.

import { FOUND_LENGTH_MAX } from "./limits.ts";

/** `isOpen`: no secret belongs there, nor is one put there by mistake. */
export function foundText(value: unknown, isOpen: boolean): string {
  switch (typeof value) {
    case "string":
      return isOpen && value.length <= FOUND_LENGTH_MAX && !value.includes("@")
        ? JSON.stringify(printable(value))
        : `a text of ${value.length} characters`;
    case "number":
      return isOpen ? numberText(value) : "a number";
    case "boolean":
      return String(value);
    case "symbol":
      return value.description ?? "nothing that is known";
    case "object":
      if (value === null) return "null";
      return Array.isArray(value) ? "a list" : "an object";
    default:
      return "nothing";
  }
}

/** As TOML writes them; JSON has no such numbers. */
function numberText(value: number): string {
  if (Number.isNaN(value)) return "nan";
  return Number.isFinite(value) ? String(value) : value < 0 ? "-inf" : "inf";
}

/** Names and texts come from outside and go into logs and terminals. */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, "?");
}
