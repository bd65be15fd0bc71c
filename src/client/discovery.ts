// Who leads? Every known address is asked at once, and the highest term wins: a node that was cut off may name a leader
// of the past. The first that names a leader starts a short grace, so that one node that does not answer costs nothing.

import { assertNever, type ErrorCode } from "../contract/errors.ts";
import type { Addresses } from "./addresses.ts";
import { exchange, jsonOf, type Line } from "./exchange.ts";
import { DISCOVERY_GRACE_MS } from "./limits.ts";
import { isFinalAnswer } from "./race.ts";
import type { LeaderView } from "./views.ts";

export type Voice =
  | {
      readonly kind: "leader";
      readonly from: string;
      readonly nodeId: string;
      readonly leaderId: string;
      readonly term: number;
      readonly leaderUrl: string | null;
      readonly leaderAddress: string | null;
    }
  | {
      readonly kind: "none";
      readonly from: string;
      readonly code: ErrorCode;
      readonly why: string;
      /** Whoever else is asked would say the same. */
      readonly isFinal: boolean;
    }
  | { readonly kind: "silent"; readonly from: string; readonly why: string; readonly code: ErrorCode | null };

export interface Discovery {
  readonly found: LeaderView | null;
  /** Who said what until then, for a message to people. */
  readonly voices: readonly Voice[];
}

export async function discover(line: Line, addresses: Addresses): Promise<Discovery> {
  const voices: Voice[] = [];
  const stop = new AbortController();
  const asked = { ...line, signal: AbortSignal.any([line.signal, stop.signal]) };
  const urls = addresses.all();
  await new Promise<void>((resolve) => {
    let grace: ReturnType<typeof setTimeout> | undefined;
    const finish = (): void => {
      clearTimeout(grace);
      resolve();
    };
    for (const url of urls) {
      void ask(asked, url).then((voice) => {
        voices.push(voice);
        const isFinalWord = voice.kind === "none" && voice.isFinal && voice.code === "UNAUTHENTICATED";
        if (voices.length === urls.length || isFinalWord) finish();
        else if (voice.kind === "leader") grace ??= setTimeout(finish, DISCOVERY_GRACE_MS);
      });
    }
  });
  const heard = [...voices];
  stop.abort();
  return { found: best(heard, addresses), voices: heard };
}

/** Pure: the highest term; among its voices the leader's own, whose address is certain to be right. */
function best(voices: readonly Voice[], addresses: Pick<Addresses, "known">): LeaderView | null {
  const leaders = voices.filter((voice) => voice.kind === "leader");
  const term = Math.max(...leaders.map((voice) => voice.term));
  const newest = leaders.filter((voice) => voice.term === term);
  const [any] = newest;
  if (any === undefined) return null;
  const own = newest.find((voice) => voice.nodeId === voice.leaderId);
  const url =
    own?.from ?? newest.map((voice) => addresses.known(voice.leaderUrl)).find((one) => one !== undefined) ?? null;
  const { leaderId, leaderUrl, leaderAddress } = own ?? any;
  return { leaderId, term, url, leaderUrl, leaderAddress };
}

/** Why asking again is of no use: what any node would say, or that none of those that answer knows the key. */
export function finalOf(voices: readonly Voice[]): Extract<Voice, { kind: "none" }> | undefined {
  const none = voices.filter((voice) => voice.kind === "none");
  const final = none.find(({ isFinal }) => isFinal);
  return final ?? (none.every(({ code }) => code === "UNAUTHENTICATED") ? none[0] : final);
}

export function voiceText(voice: Voice): string {
  switch (voice.kind) {
    case "leader":
      return `${voice.from} says that ${voice.leaderId} leads term ${voice.term}`;
    case "none":
    case "silent":
      return `${voice.from}: ${voice.why}`;
    default:
      return assertNever(voice, "voice");
  }
}

async function ask(line: Line, url: string): Promise<Voice> {
  const answer = await exchange(line, url, { method: "GET", path: "/leader" });
  switch (answer.kind) {
    case "ok":
      return voiceOf(url, await jsonOf(answer.response).catch(() => undefined));
    case "refused":
      return {
        kind: "none",
        from: url,
        code: answer.code,
        why: answer.code === "ERR_NO_LEADER" ? "it knows no leader" : answer.message,
        isFinal: isFinalAnswer(answer),
      };
    case "silent":
      return { kind: "silent", from: url, why: answer.why, code: answer.code };
    default:
      return assertNever(answer, "answer");
  }
}

function voiceOf(from: string, body: unknown): Voice {
  const {
    leader_id: leaderId,
    leader_url: leaderUrl,
    leader_address: leaderAddress,
    term,
    node_id: nodeId,
  } = (body ?? {}) as Record<string, unknown>;
  if (typeof leaderId !== "string" || typeof nodeId !== "string" || !Number.isSafeInteger(term)) {
    return { kind: "silent", from, why: "it answers, but not as a Tenure server does", code: null };
  }
  return {
    kind: "leader",
    from,
    nodeId,
    leaderId,
    term: term as number,
    leaderUrl: typeof leaderUrl === "string" ? leaderUrl : null,
    leaderAddress: typeof leaderAddress === "string" ? leaderAddress : null,
  };
}
