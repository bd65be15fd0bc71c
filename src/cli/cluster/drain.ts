// `tenure cluster drain NODE [--undo] [--force]`: takes a node out of leading, for as long as somebody works on it. The node
// itself is asked, at its own URL, and the answer comes when it does not lead any more.

import { ERRORS, TenureError } from "../../core/kit/errors.ts";
import { systemClock } from "../../drivers/system/clock.ts";
import type { ClusterView, NodeAnswer, NodeDrainView } from "../../client/index.ts";
import { clientOf, type Connection, refuseStrangers } from "../connection/connection.ts";
import { suggestion } from "../kit/flags.ts";
import { duration, json, printable } from "../kit/output.ts";
import { HAND_OVER_LIMIT_MS } from "../limits.ts";

export interface DrainStep {
  readonly node: string;
  readonly undo: boolean;
  readonly force: boolean;
}

export async function drainNode(connection: Connection, step: DrainStep): Promise<number> {
  const client = clientOf(connection, HAND_OVER_LIMIT_MS);
  const answers = await client.nodes();
  refuseStrangers(answers);
  const { url, view } = nodeIn(answers, step.node);
  if (!step.undo && !step.force) refuseLast(answers, step.node);
  const startedMs = systemClock.monotonicMs();
  const drained = await client.drainNode(url, { nodeId: step.node, drain: !step.undo, force: step.force });
  const tookMs = systemClock.monotonicMs() - startedMs;
  const led = view.role !== "STANDBY";
  process.stdout.write(
    connection.output === "json" ? json(drainObject(drained, led, tookMs)) : drainText(drained, led, tookMs),
  );
  return step.undo || drained.leaderId !== step.node ? 0 : ERRORS.ERR_LEADER_TRANSFER_FAILED.exit;
}

export function nodeIn(
  answers: readonly NodeAnswer[],
  node: string,
): { readonly url: string; readonly view: ClusterView } {
  const found = answers.find(({ view }) => view?.nodeId === node);
  if (found?.view) return { url: found.url, view: found.view };
  const views = answers.flatMap(({ view }) => (view === null ? [] : [view]));
  const member = views.flatMap(({ members }) => members).find(({ nodeId }) => nodeId === node);
  if (member !== undefined) {
    const why = answers.find(({ url }) => url === member.url)?.why ?? "it tells no URL (api.advertise)";
    const text = `${node} does not answer at ${printable(member.url ?? "-")}, and only itself can be told: ${printable(why)}.`;
    throw new TenureError("BACKEND_UNAVAILABLE", text);
  }
  if (views.length === 0) {
    const each = answers.map(({ url, why }) => `${url}: ${why}`);
    throw new TenureError("BACKEND_UNAVAILABLE", `no server answers: ${each.join("; ")}.`);
  }
  const known = [...new Set(views.flatMap(({ members }) => members.map(({ nodeId }) => nodeId)))].toSorted();
  const near = suggestion(node, known);
  throw new TenureError(
    "MEMBER_UNKNOWN",
    `there is no node ${JSON.stringify(node)}${near || `; there are ${known.join(", ")}`}`,
  );
}

/** Where nobody else is there who wants to lead. The node can't see that of itself while another leads. */
export function refuseLast(answers: readonly NodeAnswer[], node: string): void {
  const views = answers.flatMap(({ view }) => (view === null ? [] : [view]));
  const members = views.find(({ nodeId }) => nodeId === node)?.members ?? [];
  const others = members.filter(({ nodeId, kind }) => nodeId !== node && (kind === "voter" || kind === "node"));
  const reasons = others.map(({ nodeId, incarnation }) => {
    const own = views.find((one) => one.nodeId === nodeId && one.incarnation === incarnation);
    if (own === undefined) return `${nodeId} does not answer`;
    if (own.isDraining === true) return `${nodeId} is drained`;
    return own.isReady ? null : `${nodeId} is not ready`;
  });
  if (reasons.includes(null)) return;
  const why = reasons.length === 0 ? "it is the only one that can lead" : reasons.join(", ");
  throw new TenureError(
    "TRANSFER_TARGET_INVALID",
    `without ${node} nobody would be there who wants to lead: ${why}. Mend that first, or use --force.`,
  );
}

export function drainObject(
  { nodeId, isDraining, leaderId, leaderEpoch }: NodeDrainView,
  led: boolean,
  tookMs: number,
) {
  const took = Math.round(tookMs);
  return { node_id: nodeId, draining: isDraining, led, leader: leaderId, epoch: leaderEpoch, took_ms: took };
}

export function drainText(
  { nodeId, isDraining, leaderId, leaderEpoch }: NodeDrainView,
  led: boolean,
  tookMs: number,
): string {
  const who = leaderId === null ? "nobody is known to lead" : `${leaderId} leads, epoch ${leaderEpoch ?? "?"}`;
  if (!isDraining) return `${nodeId} may lead again; ${who}\n`;
  if (leaderId === nodeId) return `${nodeId} is drained, and leads on until another can, epoch ${leaderEpoch ?? "?"}\n`;
  return `${nodeId} is drained: ${led ? `it handed over in ${duration(tookMs)}, and ` : ""}${who}\n`;
}
