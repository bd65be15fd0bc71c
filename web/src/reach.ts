// What this page reaches, and what follows from it. Pure. A page that was opened under a name that no node gives itself (a
// forwarded port, localhost) may read from the node that served it alone: the others refuse it, and may be quite well.

import type { MemberView } from "../../src/client/index.ts";
import type { Leadership, Look } from "./leadership.ts";
import type { Tone } from "./words.ts";

/** One node alone, and what the nodes call themselves. */
export interface Alone {
  readonly nodeId: string;
  readonly urls: readonly string[];
}

/** `looks`: the page's own node first. Null: it reaches others, or would if they lived. */
export function aloneOf(looks: readonly Look[]): Alone | null {
  const [own, ...others] = looks;
  if (own === undefined || !own.isReached || own.nodeId === null || own.cluster === null) return null;
  const { members } = own.cluster;
  const me = members.find(({ nodeId }) => nodeId === own.nodeId);
  if (members.length < 2 || isAt(me?.url ?? null, own.url) || others.some(({ isReached }) => isReached)) return null;
  return { nodeId: own.nodeId, urls: members.flatMap(({ url }) => (url === null ? [] : [url])) };
}

function isAt(advertised: string | null, url: string): boolean {
  return advertised !== null && URL.canParse(advertised) && new URL(advertised).origin === new URL(url).origin;
}

/** Why nothing can be changed from here; null: it can. While nobody leads a request waits for the next leader. */
export function blockedText(looks: readonly Look[], { leader }: Pick<Leadership, "leader">): string | null {
  if (leader === null || looks.some(({ isReached, nodeId }) => isReached && nodeId === leader)) return null;
  const members = looks.find(({ isReached, cluster }) => isReached && cluster !== null)?.cluster?.members ?? [];
  const url = members.find(({ nodeId }) => nodeId === leader)?.url ?? null;
  return `Changes go to ${leader}, which leads and which this page does not reach${url === null ? "" : `: open ${url}`}.`;
}

/** What was said by, or asked of, this member. */
export function lookAtMember(looks: readonly Look[], { nodeId, url }: MemberView): Look | undefined {
  const path = url?.replace(/\/+$/, "");
  return (
    looks.find((look) => look.nodeId === nodeId) ?? looks.find((look) => look.nodeId === null && look.url === path)
  );
}

/** A node's copy of the history, and where to ask for it; null: this page may not go there, or not yet. */
export interface Copy {
  readonly name: string;
  readonly url: string | null;
}

/** Of every member, also of those that do not answer: a verdict that leaves one out would look like one on all of them. */
export function copiesOf(looks: readonly Look[], members: readonly MemberView[]): Copy[] {
  const lookedAt = members.map((member) => ({ member, look: lookAtMember(looks, member) }));
  const others = looks.filter((look) => look.isReached && !lookedAt.some((one) => one.look === look));
  return [
    ...lookedAt.map(({ member, look }) => ({ name: member.nodeId, url: look?.url ?? null })),
    ...others.map(({ nodeId, url }) => ({ name: nodeId ?? url, url })),
  ];
}

export interface Health {
  readonly text: string;
  readonly tone: Tone;
}

export function healthOf(
  { progress, isConnected, refusal = null }: MemberView,
  isLeader: boolean,
  look: Look | undefined,
  isAlone: boolean,
): Health {
  if (look?.isReached === true)
    return look.cluster?.isReady === false ? { text: "starting", tone: "busy" } : { text: "ok", tone: "good" };
  if (!isLeader && progress?.healthy === true) return { text: "ok", tone: "good" };
  // It lives: certificates or the secret differ.
  if (!isLeader && refusal !== null) return { text: "unauthenticated", tone: "bad" };
  if (!isLeader && progress !== null) return { text: "unresponsive", tone: "bad" };
  // The node that answers hears it: it is this page that can't ask.
  if (isAlone) return isLeader || isConnected ? NOT_ASKED : { text: "not connected", tone: "bad" };
  if (isLeader) return { text: "ok", tone: "good" };
  if (look === undefined) return NOT_ASKED;
  return look.why === null ? { text: "…", tone: "plain" } : { text: look.why, tone: "bad" };
}

const NOT_ASKED: Health = { text: "not asked", tone: "plain" };
