// Ids as clients make them: a UUIDv7 carries the time of whoever made it.

import type { Random } from "../../core/kit/random.ts";

export function uuidOf(atMs: number, random: Random): string {
  const time = Math.max(0, Math.floor(atMs)).toString(16).padStart(12, "0");
  const hex = (digits: number): string => Array.from({ length: digits }, () => random.below(16).toString(16)).join("");
  const variant = "89ab"[random.below(4)]!;
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(3)}-${variant}${hex(3)}-${hex(12)}`;
}
