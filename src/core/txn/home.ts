// Which island's record is the decision. Everybody who has the same transaction finds the same one: were it chosen anew, two islands could decide.

import type { BackendHash } from "./model.ts";

const HASH = /^[0-9a-f]{64}$/;

export interface HomeChoice {
  readonly home: BackendHash | null;
  readonly require: readonly { readonly backendHash: BackendHash }[];
  readonly participants: readonly {
    readonly backendHash: BackendHash;
    readonly operations: readonly { readonly kind: string }[];
  }[];
}

export function isBackendHash(text: unknown): text is BackendHash {
  return typeof text === "string" && HASH.test(text);
}

/**
 * The given one, else the island of the first `require`, else the smallest participant that releases a scope, else the smallest participant. Null: it names
 * no island at all. Home releases in the record of the decision, before any other island acquires: with another home a scope that is moved would be held
 * at both for as long as the commit is on its way. The order of participants never counts: whoever repeats a request may write it down in another one.
 */
export function homeOf({ home, require, participants }: HomeChoice): BackendHash | null {
  const releasing = participants.filter(({ operations }) => operations.some(({ kind }) => kind === "scope-release"));
  return home ?? require[0]?.backendHash ?? smallestOf(releasing) ?? smallestOf(participants) ?? null;
}

function smallestOf(participants: HomeChoice["participants"]): BackendHash | undefined {
  let smallest: BackendHash | undefined;
  for (const { backendHash } of participants)
    if (smallest === undefined || backendHash < smallest) smallest = backendHash;
  return smallest;
}
