// Who leads, from what the nodes themselves said last. Pure.
//
// A node that says of itself that it leads is believed, the one with the highest epoch where there are two. Else a leader
// that others name counts, unless it says itself that it does not lead: it may be out of this browser's reach and fine.

import type { ClusterView } from "../../src/client/index.ts";
import { aloneOf } from "./reach.ts";

/** No key was sent, or one that is not taken. */
export interface Refusal {
  readonly kind: "needed" | "refused";
  readonly message: string;
}

export type Access = { readonly kind: "open" } | Refusal;

/** Whether the servers let this reader in: any of them, because the page's own may be down. */
export function accessOf(looks: readonly Look[]): Access {
  if (looks.some(({ isReached }) => isReached)) return { kind: "open" };
  return looks.find(({ refused }) => refused !== null)?.refused ?? { kind: "open" };
}

/** What one node said last. */
export interface Look {
  readonly url: string;
  /** It answered the last time that it was asked. */
  readonly isReached: boolean;
  /** Why not. */
  readonly why: string | null;
  /** The last that it said of the reader's key was no. */
  readonly refused: Refusal | null;
  /** Which cluster it belongs to. */
  readonly clusterId: string | null;
  readonly nodeId: string | null;
  readonly role: "LEADER" | "STANDBY" | "DRAINING" | null;
  readonly leaderId: string | null;
  readonly epoch: number | null;
  /** How far after its data may be; null where it can't say. */
  readonly stalenessMs: number | null;
  /** Its view of the cluster, which is asked for less often. */
  readonly cluster: ClusterView | null;
}

export interface Leadership {
  readonly leader: string | null;
  readonly epoch: number | null;
  /** Of those that vote: how many there are, and how many are known to work. */
  readonly voters: number;
  readonly working: number;
  readonly reads: { readonly nodeId: string; readonly url: string; readonly stalenessMs: number | null } | null;
}

export const UNSEEN: Omit<Look, "url"> = {
  isReached: false,
  why: null,
  refused: null,
  clusterId: null,
  nodeId: null,
  role: null,
  leaderId: null,
  epoch: null,
  stalenessMs: null,
  cluster: null,
};

/** `looks`: the page's own node first, because that is where reads go while it answers. */
export function leadershipOf(looks: readonly Look[]): Leadership {
  const reached = looks.filter(({ isReached }) => isReached);
  const { leader, epoch } = leaderOf(reached);
  const reader = reached[0];
  const reads =
    reader === undefined
      ? null
      : { nodeId: reader.nodeId ?? reader.url, url: reader.url, stalenessMs: reader.stalenessMs };
  return { leader, epoch, ...votersOf(reached, leader, aloneOf(looks) !== null), reads };
}

function leaderOf(reached: readonly Look[]): { readonly leader: string | null; readonly epoch: number | null } {
  const own = reached.filter(
    ({ nodeId, role, leaderId }) => role === "LEADER" || (role === "DRAINING" && leaderId === nodeId),
  );
  const [best] = own.toSorted(byEpoch);
  const highest = Math.max(0, ...reached.map(({ epoch }) => epoch ?? 0)) || null;
  if (best !== undefined) return { leader: best.nodeId, epoch: best.epoch };
  const denied = new Set(reached.map(({ nodeId }) => nodeId));
  const named = reached.filter(({ leaderId }) => leaderId !== null && !denied.has(leaderId)).toSorted(byEpoch)[0];
  return { leader: named?.leaderId ?? null, epoch: named?.epoch ?? highest };
}

function byEpoch(a: Look, b: Look): number {
  return (b.epoch ?? 0) - (a.epoch ?? 0);
}

function votersOf(
  reached: readonly Look[],
  leader: string | null,
  isAlone: boolean,
): Pick<Leadership, "voters" | "working"> {
  const views = reached.flatMap((look) => (look.cluster === null ? [] : [{ look, view: look.cluster }]));
  const best = views.find(({ look }) => look.nodeId === leader) ?? views.toSorted((a, b) => byEpoch(a.look, b.look))[0];
  if (best === undefined) return { voters: 0, working: 0 };
  const able = best.view.members.filter(({ kind }) => kind === "voter" || kind === "node");
  const answering = new Set(reached.map(({ nodeId }) => nodeId));
  const works = able.filter(
    ({ nodeId, progress, isConnected }) =>
      answering.has(nodeId) ||
      (leader !== null && (nodeId === leader || progress?.healthy === true)) ||
      // Nobody else can be asked: what the one node hears is all that there is.
      (isAlone && progress === null && isConnected),
  );
  return { voters: able.length, working: works.length };
}

export function majorityOf(voters: number): number {
  return Math.floor(voters / 2) + 1;
}
