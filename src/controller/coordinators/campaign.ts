// A campaign: who leads, asked of everybody; then the term, first of this node's own voter, then of the others at once.

import type { PeerKey } from "../../core/kit/ids.ts";
import {
  Candidacy,
  type CoordinatorStatus,
  hasMajority,
  type PreVote,
  preVote,
  type QuorumLeader,
  type Roster,
} from "../../core/lease/index.ts";
import type { CoordinatorContext } from "./context.ts";
import { CANDIDACY_MS, COORDINATOR_CALL_MS, PRE_VOTE_MS, PRE_VOTE_REST_MS } from "./limits.ts";

/** Waits: as far as a majority knows somebody leads, or there is none that answers; nobody was asked for anything. */
export type Campaign = { readonly kind: "won"; readonly leader: QuorumLeader } | { readonly kind: "lost" | "waits" };

/** `isPatient`: all are waited for, as long as any call may take. */
export async function campaign(context: CoordinatorContext, isPatient = false): Promise<Campaign> {
  const { desk, options } = context;
  const { vote, answered } = await askWhoLeads(context, isPatient);
  const { clusterId, roster } = desk.ledger;
  if (clusterId === null || roster === null || desk.isOutdated || desk.isLeaving || vote.kind === "wait")
    return { kind: "waits" };
  const candidacy = new Candidacy({ self: options.self, clusterId, roster, term: vote.term });
  await askAll(context, candidacy, answered);
  if (candidacy.verdict === "won") return { kind: "won", leader: candidacy.leader() };
  abandon(context, candidacy, roster);
  return { kind: "lost" };
}

/**
 * Of this node and all other members of its cluster. A leader that has stopped answers nothing, so a majority suffices, whatever it says; the others
 * are given a moment, because whoever knows a higher term would refuse this one. But those that are near may never grant anything (one with a disk
 * that hangs), and those that are far be the majority with which it wins: so whoever has campaigned in vain a few times waits for them.
 */
async function askWhoLeads(
  context: CoordinatorContext,
  isPatient: boolean,
): Promise<{ vote: PreVote; answered: ReadonlySet<PeerKey> }> {
  const { desk, options, otherEndpoints } = context;
  const { ledger } = desk;
  const answered: CoordinatorStatus[] = [];
  const withinMs = isPatient ? COORDINATOR_CALL_MS : PRE_VOTE_MS;
  let missing = otherEndpoints.length;
  for (const endpoint of otherEndpoints)
    void context.statusOf(endpoint, withinMs).then((status) => {
      missing -= 1;
      if (status !== null && status.clusterId === ledger.clusterId) answered.push(status);
      context.changed();
    });
  const hasAnswered = (peer: PeerKey): boolean => peer === options.self || answered.some(({ self }) => self === peer);
  const voters = ledger.roster?.voters ?? [];
  await context.until(() => missing === 0 || (!isPatient && hasMajority(voters, hasAnswered)), withinMs);
  await context.until(() => missing === 0, PRE_VOTE_REST_MS);
  const vote = preVote(options.self, desk.ledger, [desk.status, ...answered]);
  return { vote, answered: new Set(answered.map(({ self }) => self)) };
}

/** `answering`: those that have just answered. */
async function askAll(
  context: CoordinatorContext,
  candidacy: Candidacy,
  answering: ReadonlySet<PeerKey>,
): Promise<void> {
  const own = candidacy.ownRequest();
  const sentAt = context.now();
  const answer = await context.vote(own.to, own.request);
  if (answer === null) return;
  candidacy.took(own, sentAt, answer);
  if (answer.outcome.kind === "refused") return;
  for (const sent of candidacy.otherRequests()) {
    const askedAt = context.now();
    void context.vote(sent.to, sent.request, CANDIDACY_MS).then((given) => {
      if (given === null) return;
      candidacy.took(sent, askedAt, given);
      context.changed();
    });
  }
  await context.until(() => candidacy.verdict !== "open" || candidacy.isHopeless(answering), CANDIDACY_MS);
}

/**
 * The term is given up for good. Whoever granted it need not wait for its end. Where this node's own grant has not come, nobody else was asked, and
 * nobody else hears of it: the same term may be asked for again, and a late release would free its voters then.
 */
function abandon(context: CoordinatorContext, candidacy: Candidacy, { voters }: Roster): void {
  const { self } = context.options;
  const { request } = candidacy.ownRequest();
  const { clusterId, holder, term } = request;
  for (const voter of voters)
    if (candidacy.hasOwnGrant || voter.peer === self)
      void context.vote(voter, { kind: "release", clusterId, holder, voter: voter.peer, term });
}
