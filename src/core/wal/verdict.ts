// The two bad ends of recovery. Damaged: our directory, and something acknowledged may be gone from it.
// Refusal: not ours to touch; the message says whose it is and what to do.

export interface Damaged {
  readonly kind: "damaged";
  readonly reason: string;
  /** A file and, where there is one, the offset in it. */
  readonly where: string;
}

export interface Refusal {
  readonly kind: "refuse";
  readonly code: "STAMP_MISMATCH" | "FORMAT_UNSUPPORTED";
  readonly reason: string;
}

export function damaged(reason: string, where: string): Damaged {
  return { kind: "damaged", reason, where };
}

export function mismatch(name: string, owner: string): Refusal {
  const reason = `${name} belongs to ${owner}. Give this node its own directory, or mend its configuration.`;
  return { kind: "refuse", code: "STAMP_MISMATCH", reason };
}

export function unsupported(name: string, version: number): Refusal {
  const reason = `${name} has format version ${version}, from a later release. Start that release, or a later one, here.`;
  return { kind: "refuse", code: "FORMAT_UNSUPPORTED", reason };
}
