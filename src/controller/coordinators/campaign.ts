// A campaign: who leads, asked of everybody; then the term, first of this node's own voter, then of the others at once.

import {
  Candidacy,
  type CoordinatorStatus,
  type PreVote,
  preVote,
  type QuorumLeader,
  type Roster,
} from "../../core/lease/index.ts";
import type { CoordinatorContext } from "./context.ts";
import { CANDIDACY_MS, PRE_VOTE_MS, PRE_VOTE_REST_MS } from "./limits.ts";

/** Null: somebody leads, or there is no quorum. */
export async function campaign(context: CoordinatorContext): Promise<QuorumLeader | null> {
  const { desk, options } = context;
  const vote = await askWhoLeads(context);
  const { clusterId, roster } = desk.ledger;
  if (clusterId === null || roster === null || desk.isOutdated || desk.isLeaving) return null;
  if (vote.kind === "wait") return null;
  const candidacy = new Candidacy({ self: options.self, clusterId, roster, term: vote.term });
  await askAll(context, candidacy);
  if (candidacy.verdict === "won") return candidacy.leader();
  abandon(context, candidacy, roster);
  return null;
}

/**
 * Of this node and all other members of its cluster. A leader that has stopped answers nothing, so a majority suffices; the rest are given a moment,
 * because whoever knows a higher term would refuse this one.
 */
async function askWhoLeads(context: CoordinatorContext): Promise<PreVote> {
  const { desk, options, otherEndpoints } = context;
  const { ledger } = desk;
  const answered: CoordinatorStatus[] = [];
  let missing = otherEndpoints.length;
  for (const endpoint of otherEndpoints)
    void context.statusOf(endpoint, PRE_VOTE_MS).then((status) => {
      missing -= 1;
      if (status !== null && status.clusterId === ledger.clusterId) answered.push(status);
      context.changed();
    });
  const vote = (): PreVote => preVote(options.self, desk.ledger, [desk.status, ...answered]);
  await context.until(() => missing === 0 || vote().kind === "campaign", PRE_VOTE_MS);
  await context.until(() => missing === 0, PRE_VOTE_REST_MS);
  return vote();
}

async function askAll(context: CoordinatorContext, candidacy: Candidacy): Promise<void> {
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
  await context.until(() => candidacy.verdict !== "open", CANDIDACY_MS);
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
