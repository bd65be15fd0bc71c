// Whether the histories that the nodes keep are whole, and one history. Each node checks its own; then they are compared, in the
// order of their length: the root that a node has for as many events as the one before it must be that one's root. So each pair
// of neighbours shares a beginning, and with that all of them do.

import type { ClientHistory, HistoryVerdict } from "../../client/history.ts";
import type { NodeAnswer } from "../../client/index.ts";
import { type ErrorCode, TenureError } from "../../contract/errors.ts";

/** Of one node: its verdict, or why there is none. */
export interface NodeHistory {
  readonly nodeId: string | null;
  readonly url: string;
  readonly verdict: HistoryVerdict | null;
  /** Null: it did not answer. */
  readonly code: ErrorCode | null;
  readonly why: string | null;
}

/** The first two that have not the same beginning, or could not be compared. */
export interface Difference {
  readonly one: string;
  readonly other: string;
  /** They were compared up to here. */
  readonly sequence: number;
  /** Null: they differ. Else why that is not known. */
  readonly unknown: TenureError | null;
}

type Options = { readonly signal: AbortSignal };

export async function verifyNodes(
  answers: readonly NodeAnswer[],
  history: ClientHistory,
  options: Options,
): Promise<readonly NodeHistory[]> {
  return await Promise.all(
    answers.map(async ({ url, view, why, code }) => {
      if (view === null) return { nodeId: null, url, verdict: null, code, why };
      const nodeId = view.nodeId;
      try {
        return { nodeId, url, verdict: await history.verify(url, options), code: null, why: null };
      } catch (error) {
        if (!TenureError.is(error)) throw error;
        return { nodeId, url, verdict: null, code: error.code, why: error.message };
      }
    }),
  );
}

/** Null: they are the same, as far as each goes. */
export async function compareNodes(
  nodes: readonly NodeHistory[],
  history: ClientHistory,
  options: Options,
): Promise<Difference | null> {
  const whole = nodes
    .flatMap(({ url, nodeId, verdict }) => (verdict?.valid === true ? [{ url, name: nodeId ?? url, ...verdict }] : []))
    .toSorted((a, b) => a.throughSequence - b.throughSequence)
    // Where there is no event there is nothing to compare.
    .filter(({ throughSequence }) => throughSequence > 0);
  for (const [at, shorter] of whole.entries()) {
    const longer = whole[at + 1];
    if (longer === undefined) break;
    const pair = { one: shorter.name, other: longer.name, sequence: shorter.throughSequence };
    try {
      const isSameLength = longer.throughSequence === shorter.throughSequence;
      const root = isSameLength ? longer.root : await history.root(longer.url, shorter.throughSequence, options);
      if (root !== shorter.root) return { ...pair, unknown: null };
    } catch (error) {
      if (!TenureError.is(error)) throw error;
      return { ...pair, unknown: error };
    }
  }
  return null;
}

/** What the exit code says; null: all is well. */
export function problemOf(nodes: readonly NodeHistory[], difference: Difference | null): TenureError | null {
  const names = nodes.filter(({ verdict }) => verdict?.valid === false);
  if (names.length > 0) {
    const each = names.map(({ nodeId, url, verdict }) => `${nodeId ?? url} ${brokenText(verdict)}`);
    return new TenureError(
      "CHAIN_BROKEN",
      `the history is broken: ${each.join("; ")}. Keep the data directory, and start the node again: it fetches from the others what it lacks.`,
    );
  }
  if (difference !== null && difference.unknown === null) {
    const { one, other, sequence } = difference;
    return new TenureError(
      "CHAIN_BROKEN",
      `${one} and ${other} differ in their first ${sequence} events. Keep both data directories.`,
    );
  }
  const refused = nodes.find(({ verdict, nodeId, code }) => verdict === null && nodeId !== null && code !== null);
  if (refused !== undefined)
    return new TenureError(refused.code ?? "INTERNAL", `${refused.nodeId} was not verified: ${refused.why}`);
  if (difference !== null && difference.unknown !== null) {
    const { one, other, unknown } = difference;
    return new TenureError(unknown.code, `${one} and ${other} could not be compared: ${unknown.message}`);
  }
  if (nodes.some(({ verdict }) => verdict !== null)) return null;
  const each = nodes.map(({ url, why }) => `${url}: ${why}`);
  return new TenureError("BACKEND_UNAVAILABLE", `no server answers: ${each.join("; ")}.`);
}

export function brokenText(verdict: HistoryVerdict | null): string {
  return verdict === null || verdict.valid ? "" : `at sequence ${verdict.firstBrokenSequence}: ${verdict.reason}`;
}
