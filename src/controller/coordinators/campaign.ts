// A campaign: who leads, asked of everybody; then the term, first of this node's own voter, then of the others at once.

import { Candidacy, type CoordinatorStatus, preVote, type QuorumLeader, type Roster } from "../../core/lease/index.ts";
import type { CoordinatorContext } from "./context.ts";
import { CANDIDACY_MS, PRE_VOTE_MS } from "./limits.ts";

/** Null: somebody leads, or there is no quorum. */
export async function campaign(context: CoordinatorContext): Promise<QuorumLeader | null> {
  const { desk, options } = context;
  const statuses = await allStatuses(context);
  const { clusterId, roster } = desk.ledger;
  if (clusterId === null || roster === null || desk.isOutdated || desk.isLeaving) return null;
  const vote = preVote(options.self, desk.ledger, statuses);
  if (vote.kind === "wait") return null;
  const candidacy = new Candidacy({ self: options.self, clusterId, roster, term: vote.term });
  await askAll(context, candidacy);
  if (candidacy.verdict === "won") return candidacy.leader();
  abandon(context, roster, clusterId, vote.term);
  return null;
}

/** This node's own one, and those of other members of its cluster. */
async function allStatuses(context: CoordinatorContext): Promise<CoordinatorStatus[]> {
  const { desk, otherEndpoints } = context;
  const asked = otherEndpoints.map((endpoint) => context.statusOf(endpoint, PRE_VOTE_MS));
  const answered = await Promise.all(asked);
  const { clusterId } = desk.ledger;
  return [desk.status, ...answered.filter((status) => status !== null && status.clusterId === clusterId)].filter(
    (status) => status !== null,
  );
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

/** The term is given up for good. Whoever granted it need not wait for its end. */
function abandon(context: CoordinatorContext, { voters }: Roster, clusterId: string, term: number): void {
  const { self: holder } = context.options;
  for (const voter of voters) {
    void context.vote(voter, { kind: "release", clusterId, holder, voter: voter.peer, term });
  }
}
