// The verdicts on the nodes' histories as they are printed. Pure; the fields of the object are documented in
// docs/reference/cli.md, and a test compares.

import type { NodeAnswer } from "../../client/index.ts";
import type { TenureError } from "../../contract/errors.ts";
import { brokenText, type Difference, type NodeHistory } from "./verify.ts";
import { columns, printable } from "../kit/output.ts";

/** Enough to see that two are the same; `-o json` has all of it. */
const HASH_LETTERS = 16;

export function verifyObject(
  nodes: readonly NodeHistory[],
  difference: Difference | null,
  problem: TenureError | null,
) {
  return {
    whole: problem === null,
    agree: agreeOf(nodes, difference),
    problem: problem?.message ?? null,
    nodes: nodes.map(({ nodeId, url, verdict, why }) => {
      const whole = verdict?.valid === true ? verdict : null;
      const broken = verdict?.valid === false ? verdict : null;
      return {
        node_id: nodeId,
        url,
        valid: verdict?.valid ?? null,
        events: whole === null ? null : whole.throughSequence - whole.firstSequence + 1,
        first_sequence: verdict?.firstSequence ?? null,
        through_sequence: whole?.throughSequence ?? null,
        head_hash: whole?.headHash ?? null,
        root: whole?.root ?? null,
        first_broken_sequence: broken?.firstBrokenSequence ?? null,
        reason: broken?.reason ?? null,
        error: why,
      };
    }),
  };
}

export function verifyText(nodes: readonly NodeHistory[], difference: Difference | null): string {
  const rows = nodes.map(({ nodeId, url, verdict, why }) => {
    const name = nodeId ?? url;
    if (verdict === null) return [name, "?", "-", "-", "-", why ?? "?"];
    if (!verdict.valid) return [name, "broken", `${verdict.firstSequence}…`, "-", "-", brokenText(verdict)];
    const { firstSequence, throughSequence, headHash, root } = verdict;
    const range = throughSequence < firstSequence ? "none" : `${firstSequence}…${throughSequence}`;
    return [name, "whole", range, headHash?.slice(0, HASH_LETTERS) ?? "-", root.slice(0, HASH_LETTERS), ""];
  });
  const table = columns([
    ["NODE", "HISTORY", "EVENTS", "HEAD", "ROOT", "WHY"],
    ...rows.map((row) => row.map(printable)),
  ]);
  return `${table}${agreement(nodes, difference)}`;
}

function agreement(nodes: readonly NodeHistory[], difference: Difference | null): string {
  switch (agreeOf(nodes, difference)) {
    case true:
      return "they are the same, as far as each goes\n";
    case false:
      return "they are not the same\n";
    default:
      return "";
  }
}

/** Null: there are not two to compare, or they could not be compared. */
function agreeOf(nodes: readonly NodeHistory[], difference: Difference | null): boolean | null {
  if (difference !== null) return difference.unknown === null ? false : null;
  return nodes.filter(({ verdict }) => verdict?.valid === true).length > 1 ? true : null;
}

/** What is missing from the verdict, for stderr. */
export function verifyNotes(answers: readonly NodeAnswer[]): string[] {
  const seen = new Set(answers.map(({ view }) => view?.nodeId));
  const hidden = answers
    .flatMap(({ view }) => view?.members ?? [])
    .filter(({ url, nodeId }) => url === null && !seen.has(nodeId));
  return [
    ...answers.flatMap(({ url, view, why }) => (view === null ? [`without ${url}: ${printable(why)}`] : [])),
    ...new Set(hidden.map(({ nodeId }) => `without ${nodeId}, which tells no URL: set api.advertise there`)),
  ];
}
