// The islands and their transaction coordinators, as one node knows them: its rows, and what a person has to do. Pure.

import type { IslandsView } from "../../src/client/index.ts";
import { webUrl } from "./sites.ts";
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

/** Of `unknown` ones the leader's page says more. */
export const STATES: Readonly<Record<IslandRow["state"], { readonly tone: Tone; readonly text: string }>> = {
  leads: { tone: "good", text: "leads" },
  answers: { tone: "good", text: "answers" },
  silent: { tone: "bad", text: "silent" },
  leaving: { tone: "busy", text: "leaving" },
  unknown: { tone: "plain", text: "votes" },
  waits: { tone: "busy", text: "no voter yet" },
};

/** "island-2 leads in term 5"; null: nobody does. */
export function leaderText({ leader }: Pick<IslandsView, "leader">): string | null {
  return leader === null ? null : `${leader.identity} leads in term ${leader.term}`;
}

/** "2 of 3 voters" */
export function quorumText({ quorum, voters }: Pick<IslandsView, "quorum" | "voters">): string {
  return voters.length === 0 ? "-" : `${quorum} of ${voters.length} ${voters.length === 1 ? "voter" : "voters"}`;
}

const MORE = "See docs/runbooks/tc-coordinators.md.";

/** What a person has to do; null: nothing. */
export function adviceOf({
  left,
  leader,
  waitsFor,
  roster,
  quorum,
  voters,
}: IslandsView): { readonly isBad: boolean; readonly text: string } | null {
  if (left)
    return { isBad: false, text: "This node has left. It takes part again after tenure tc announce, or a restart." };
  if (leader === null) {
    const why =
      waitsFor.length > 0
        ? `no cluster of coordinators is founded before these have answered: ${waitsFor.join(", ")}. Start them, or correct tc.join.`
        : roster === null
          ? "this node waits until a leader admits it. Check that the nodes of tc.join run and can be reached."
          : `a leader needs ${quorum} of ${voters.length} voters. Start those that are down, and repair the network between the islands.`;
    return {
      isBad: true,
      text: `Transactions over several islands wait, this island's own work goes on: ${why} ${MORE}`,
    };
  }
  const silent = voters.filter(({ state }) => state === "silent").map(({ identity }) => identity);
  if (silent.length === 0) return null;
  const isLast = voters.length - silent.length <= quorum;
  const risk = isLast ? " If one more fails, nobody leads." : "";
  return {
    isBad: isLast,
    text: `Voters that do not answer the leader: ${silent.join(", ")}.${risk} Start or replace them. ${MORE}`,
  };
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
