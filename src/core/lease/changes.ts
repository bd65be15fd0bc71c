// Which change of the voters is due: one at a time, and only towards voters of whom a majority has just answered. A crash alone removes nobody; a
// voter that is silent and not listed any more is retired only where that lowers the quorum (4 to 3, 5 to 3 with two gone; not 3 to 2).

import { nodeIdOf, type PeerKey } from "../kit/ids.ts";
import { MEMBERS_MAX } from "../kit/limits.ts";
import type { RosterVoter } from "./model.ts";
import { hasMajority } from "./quorum.ts";
import { majorityOf } from "./roster.ts";

export interface ChangeView {
  readonly self: PeerKey;
  readonly voters: readonly RosterVoter[];
  /** Node ids with a membership lease. */
  readonly listed: ReadonlySet<string>;
  /** No voters yet; they have answered a renewal, and want to stay. */
  readonly joiners: readonly RosterVoter[];
  readonly isLeaving: (peer: PeerKey) => boolean;
  /** Its identity answers with another incarnation: this one's disk is gone. */
  readonly isReplaced: (peer: PeerKey) => boolean;
  /** It answered the last round. */
  readonly hasAnswered: (peer: PeerKey) => boolean;
  /** It has been asked for as long, and has not. */
  readonly isSilent: (peer: PeerKey) => boolean;
}

/** The voters that come next; null: they stay. */
export function dueVoters(view: ChangeView): readonly RosterVoter[] | null {
  const { voters, self, hasAnswered } = view;
  for (const { peer } of [...replacedOf(view), ...leavingOf(view), ...retiredOf(view)]) {
    if (peer === self) continue;
    const rest = voters.filter((voter) => voter.peer !== peer);
    if (rest.length > 0 && hasMajority(rest, hasAnswered)) return rest;
  }
  return joinedOf(view);
}

function replacedOf({ voters, isReplaced }: ChangeView): readonly RosterVoter[] {
  return voters.filter(({ peer }) => isReplaced(peer));
}

function leavingOf({ voters, isLeaving }: ChangeView): readonly RosterVoter[] {
  return voters.filter(({ peer }) => isLeaving(peer));
}

function retiredOf({ voters, listed, isSilent, self }: ChangeView): readonly RosterVoter[] {
  const gone = voters.filter(({ peer }) => peer !== self && !listed.has(nodeIdOf(peer)) && isSilent(peer));
  // An odd roster's quorum is lowered by the second one only. Of two voters the leader alone would be the rest: silence must not decide that.
  const lowered = voters.length - (voters.length % 2 === 0 ? 1 : 2);
  const isLower = gone.length >= voters.length - lowered && majorityOf(lowered) < majorityOf(voters.length);
  return isLower && lowered > 1 ? gone : [];
}

function joinedOf({ voters, joiners, isLeaving }: ChangeView): readonly RosterVoter[] | null {
  if (voters.length >= MEMBERS_MAX) return null;
  const identities = new Set(voters.map(({ peer }) => nodeIdOf(peer)));
  // A former incarnation is removed first.
  const able = joiners.filter(({ peer }) => !identities.has(nodeIdOf(peer)) && !isLeaving(peer));
  const [joiner] = able.toSorted((a, b) => (a.peer < b.peer ? -1 : 1));
  return joiner === undefined ? null : [...voters, joiner];
}
