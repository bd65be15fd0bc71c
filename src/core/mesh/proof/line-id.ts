// The name of a line: the site's id, and the hash of the first ring that signs it. Whoever knows a line's name can check its first ring
// without trusting whoever sent it, and nobody can continue a line, or begin one of the same name, without one of these keys.

import type { Digest } from "../../../ports/digest.ts";
import type { LineId, Ring } from "../model.ts";
import { LINE_DIGITS } from "./limits.ts";
import { ringHashOf } from "./ring.ts";

const LINE = /^[a-z0-9][a-z0-9-]{0,62}\.[0-9a-f]{32}$/;

export function lineIdOf(firstRing: Ring, digest: Pick<Digest, "sha256Hex">): LineId {
  return `${firstRing.controller}.${ringHashOf(firstRing, digest).slice(0, LINE_DIGITS)}`;
}

export function isLineId(text: unknown): text is LineId {
  return typeof text === "string" && LINE.test(text);
}

/** Of a line's id; a controller's id has no dot. */
export function controllerOf(line: LineId): string {
  return line.slice(0, line.lastIndexOf("."));
}
