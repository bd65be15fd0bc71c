// `tenure member add|promote|replace|remove`: who belongs to the cluster. The leader makes each change by a joint
// configuration. A command that ends well has been committed, but for `replace`: it begins, and the leader swaps the disks
// when the new one has caught up. `add --voter` ends well when the node is a voter.

import { CONNECTION_KINDS } from "../kit/connection-help.ts";
import { kindsOf, verbsOf } from "../kit/description.ts";
import { MEMBER } from "./help.ts";
import type { ClusterView, MemberChange, MemberView } from "../../client/index.ts";
import { clientOf, readConnection } from "../connection/connection.ts";
import { type Paint, paintState } from "../kit/colour.ts";
import { parseFlags, UsageError } from "../kit/flags.ts";
import { json, printable, table, withLongOutput } from "../kit/output.ts";
import { chosen } from "../kit/words.ts";
import { CHANGE_LIMIT_MS } from "../limits.ts";
import { printed, stdoutPaint, warn } from "../kit/print.ts";

const VERBS = verbsOf(MEMBER);
const NODE_ID = /^[a-z0-9][a-z0-9-]{0,62}$/;

const KINDS = { ...CONNECTION_KINDS, ...kindsOf(MEMBER) };

export async function member(args: readonly string[]): Promise<number> {
  const { values, words, rest } = parseFlags(withLongOutput(args), KINDS);
  if (values.help !== undefined) return printed(MEMBER.help);
  const change = readChange([...words, ...(rest ?? [])], {
    isVoter: values.voter !== undefined,
    isForced: values.force !== undefined,
  });
  const connection = await readConnection(values, process.env);
  const client = clientOf(connection, CHANGE_LIMIT_MS);
  if (change.op === "remove") {
    // What the warning can't be made of does not stop the change: the leader itself says what is wrong.
    const view = await client.cluster().catch(() => null);
    for (const warning of view === null ? [] : removalWarnings(view, change.nodeId)) {
      warn(warning);
    }
  }
  const { op, nodeId, message, members } = await client.changeMember(change);
  const object = { op, node_id: nodeId, message, members: members.map(memberObject) };
  return printed(
    connection.output === "json" ? json(object) : `${printable(message)}\n\n${membersTable(members, stdoutPaint())}`,
  );
}

export function readChange(
  words: readonly string[],
  { isVoter = false, isForced = false }: { readonly isVoter?: boolean; readonly isForced?: boolean } = {},
): MemberChange {
  const op = chosen(words[0], VERBS);
  const [, nodeId, more] = words;
  if (nodeId === undefined) throw new UsageError(`${op} needs a node: tenure member ${op} NODE`);
  if (more !== undefined) throw new UsageError(`${op} takes one node, not ${words.length - 1}: one change at a time`);
  if (!NODE_ID.test(nodeId)) {
    throw new UsageError(`${JSON.stringify(nodeId)} is no node id: a–z, 0–9 and -, at most 63, not beginning with -`);
  }
  if (isVoter && op !== "add") throw new UsageError(`--voter belongs to add, not to ${op}`);
  if (isForced && op !== "remove" && op !== "replace") {
    throw new UsageError(`--force belongs to remove and replace, not to ${op}`);
  }
  if (op === "add") return { op, nodeId, promote: isVoter };
  return isForced && op !== "promote" ? { op, nodeId, force: true } : { op, nodeId };
}

/** Pure. */
export function removalWarnings(
  { members, leader }: Pick<ClusterView, "members" | "leader">,
  nodeId: string,
): string[] {
  const voters = members.filter(({ kind }) => kind === "voter");
  if (!voters.some((one) => one.nodeId === nodeId)) return [];
  const left = voters.length - 1;
  return [
    ...(leader?.nodeId === nodeId ? [`${nodeId} leads; it hands over first, and writes pause for that moment`] : []),
    ...(left === 1
      ? ["one voter is left: when it stops, the cluster stands still, and when its disk is lost, so is the data"]
      : []),
    ...(left === 2 ? ["two voters are left: when either stops, the cluster stands still. Add another one"] : []),
  ];
}

function memberObject({ nodeId, incarnation, kind, isLeader, address, url }: MemberView) {
  return { node_id: nodeId, incarnation, kind, is_leader: isLeader, address, url };
}

function membersTable(members: readonly MemberView[], paint: Paint): string {
  const rows = members.map(({ nodeId, incarnation, kind, isLeader, address }) => [
    nodeId,
    incarnation.slice(0, 8),
    kind,
    paintState(isLeader ? "leader" : "follower", paint),
    printable(address ?? "-"),
  ]);
  return table(["NODE", "DISK ID", "KIND", "ROLE", "ADDRESS"], rows, paint);
}
