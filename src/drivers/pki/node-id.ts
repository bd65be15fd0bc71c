// A node id that nobody chose: short enough to be typed, random enough that no two meet.

import { randomInt } from "node:crypto";

const ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789";
const LETTERS = 8;

export function newNodeId(): string {
  return `n-${Array.from({ length: LETTERS }, () => ALPHABET[randomInt(ALPHABET.length)]).join("")}`;
}
