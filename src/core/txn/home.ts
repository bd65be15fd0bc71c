// Which island's record is the decision. Everybody who has the same transaction finds the same one: were it chosen anew, two islands could decide.

import type { BackendHash } from "./model.ts";

const HASH = /^[0-9a-f]{64}$/;

export interface HomeChoice {
  readonly home: BackendHash | null;
  readonly require: readonly { readonly backendHash: BackendHash }[];
  readonly participants: readonly { readonly backendHash: BackendHash }[];
}

export function isBackendHash(text: unknown): text is BackendHash {
  return typeof text === "string" && HASH.test(text);
}

/** The given one, else the island of the first `require`, else the smallest participant. Null: it names no island at all. */
export function homeOf({ home, require, participants }: HomeChoice): BackendHash | null {
  return home ?? require[0]?.backendHash ?? participants.map(({ backendHash }) => backendHash).toSorted()[0] ?? null;
}
