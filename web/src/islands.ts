// The islands and their transaction coordinators, as one node knows them: its rows, and what a person has to do. Pure.

import type { IslandsView } from "../../src/client/index.ts";
import type { Tone } from "./words.ts";

type Voter = IslandsView["voters"][number];

/** One node: a voter, a member that is listed, or both. */
export interface IslandRow {
  readonly identity: string;
  /** Of its own API and dashboard; null: no address of a web page. */
  readonly url: string | null;
  readonly endpoint: string;
  readonly isOwn: boolean;
  readonly state: Voter["state"] | "waits";
  /** When it announced itself last; null: it is not listed. */
  readonly heardMs: number | null;
}

export function rowsOf({ voters, members, self }: IslandsView): readonly IslandRow[] {
  const listed = new Map(members.map((member) => [member.identity, member]));
  // Where a node announced itself last is newer than what the roster has.
  const ofVoters = voters.map(({ identity, endpoint, state }) => {
    const member = listed.get(identity);
    return { identity, endpoint: member?.endpoint ?? endpoint, state, heardMs: member?.updatedAtMs ?? null };
  });
  const ofOthers = members
    .filter(({ identity }) => !voters.some((voter) => voter.identity === identity))
    .map(({ identity, endpoint, updatedAtMs }) => ({
      identity,
      endpoint,
      state: "waits" as const,
      heardMs: updatedAtMs,
    }));
  return [...ofVoters, ...ofOthers]
    .map((row) => ({ ...row, url: webUrl(row.endpoint), isOwn: row.identity === self.identity }))
    .toSorted((a, b) => (a.identity < b.identity ? -1 : 1));
}

export function stateText(state: IslandRow["state"]): { readonly tone: Tone; readonly text: string } {
  switch (state) {
    case "leads":
      return { tone: "good", text: "leads" };
    case "answers":
      return { tone: "good", text: "answers" };
    case "silent":
      return { tone: "bad", text: "silent" };
    case "leaving":
      return { tone: "busy", text: "leaving" };
    case "unknown":
      return { tone: "plain", text: "votes" };
    case "waits":
      return { tone: "busy", text: "no voter yet" };
    default:
      throw state satisfies never;
  }
}

/** "island-2 leads in term 5"; null: nobody does. */
export function leaderText({ leader }: Pick<IslandsView, "leader">): string | null {
  return leader === null ? null : `${leader.identity} leads in term ${leader.term}`;
}

/** "2 of 3 voters" */
export function quorumText({ quorum, voters }: Pick<IslandsView, "quorum" | "voters">): string {
  return voters.length === 0 ? "-" : `${quorum} of ${voters.length} ${voters.length === 1 ? "voter" : "voters"}`;
}

const BOOK = "docs/runbooks/tc-coordinators.md";

/** What a person has to do, the gravest first; none where all is well. */
export function adviceOf(view: IslandsView): readonly { readonly isBad: boolean; readonly text: string }[] {
  if (view.left) {
    return [
      {
        isBad: false,
        text: "This node has left the transaction coordinators. It takes part again after tenure tc announce, or when it is started again.",
      },
    ];
  }
  return view.leader === null ? [{ isBad: true, text: leaderless(view) }] : silentAdvice(view);
}

function leaderless({ waitsFor, roster, quorum, voters }: IslandsView): string {
  if (waitsFor.length > 0) {
    return `No cluster of coordinators was founded yet: ${waitsFor.join(", ")} ${waitsFor.length === 1 ? "has" : "have"} not answered. Start what is missing, or correct tc.join on every node. Transactions over several islands wait.`;
  }
  if (roster === null) {
    return "This node is in no cluster of coordinators yet: it waits until a leader admits it. Check that the nodes of tc.join run, that they can be reached from here, and that one of them leads.";
  }
  const needed = voters.length === quorum ? `all ${quorum}` : `${quorum} of ${voters.length}`;
  return `Nobody leads, as far as this node knows: transactions over several islands wait, and this island's own work goes on. A leader needs ${needed} voters. Start those that are down, and repair the network between the islands. If a majority of them is gone for good, make one of the others the only voter: tenure tc recover (${BOOK}).`;
}

function silentAdvice({ voters, quorum }: IslandsView): readonly { readonly isBad: boolean; readonly text: string }[] {
  const silent = voters.filter(({ state }) => state === "silent").map(({ identity }) => identity);
  if (silent.length === 0) return [];
  const spare = voters.length - silent.length - quorum;
  const risk = spare > 0 ? "" : ": if one more fails, nobody leads";
  const text = `${silent.join(", ")} ${silent.length === 1 ? "does" : "do"} not answer the leader. A silent voter still counts for the quorum${risk}. Start it, or replace it where it is gone for good (${BOOK}).`;
  return [{ isBad: spare <= 0, text }];
}

export interface IslandEntry {
  readonly backendHash: string;
  readonly isOwn: boolean;
  readonly endpoints: readonly string[];
}

/** Each island of the registry once. */
export function registryOf({ registry, self }: Pick<IslandsView, "registry" | "self">): readonly IslandEntry[] {
  const byHash = Map.groupBy(registry, ({ backendHash }) => backendHash);
  return [...byHash]
    .map(([backendHash, entries]) => ({
      backendHash,
      isOwn: backendHash === self.backendHash,
      endpoints: entries.map(({ endpoint }) => endpoint).toSorted(),
    }))
    .toSorted((a, b) => (a.backendHash < b.backendHash ? -1 : 1));
}

/** What another node says of itself may be anything. */
function webUrl(text: string): string | null {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) ? text : null;
}
