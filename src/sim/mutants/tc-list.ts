// The planted mistakes of the transaction coordinators: of the voter, of rosters, of the leader, of membership and of the registry. Each must be
// found by the simulation of coordinators (sim/tc), besides the tests next to the code that name the rule.

import { type Mutant, planting } from "./patch.ts";

const VOTER = "core/lease/voter.ts";
const LEADER = "core/lease/leader.ts";
const CANDIDACY = "core/lease/candidacy.ts";
const CHANGES = "core/lease/changes.ts";
const DESK = "controller/coordinators/ledger-desk.ts";
const LEADING = "controller/coordinators/leading.ts";
const SEAT = "electors/quorum/seat.ts";
const FILES = "controller/coordinators/files.ts";
const MEMBERSHIP = "controller/coordinators/membership.ts";
const REGISTRATION = "controller/coordinators/registration.ts";

const mutant = planting(undefined, "tc");
const founding = planting({ aim: "founding" }, "tc");
const ofRosters = planting({ aim: "roster" }, "tc");
const recovery = planting({ aim: "recovery" }, "tc");
const recoveryOfFive = planting({ aim: "recovery", nodes: 5 }, "tc");
const ofClocks = planting({ aim: "clock" }, "tc");
const ofRegistry = planting({ aim: "registry" }, "tc");
const ofPlaces = planting({ aim: "places" }, "tc");
const ofCopies = planting({ aim: "copies" }, "tc");

export const TC_MUTANTS: readonly Mutant[] = [
  ofRosters("quorum-over-unexpired", "2.5 quorum", {
    file: "controller/coordinators/campaign.ts",
    find: "  const candidacy = new Candidacy({ self: options.self, clusterId, roster, term: vote.term });",
    replace: `  const listed = new Set(context.members.active(options.clock.wallMs()).map(({ identity }) => identity));
  const unexpired = { ...roster, voters: roster.voters.filter(({ peer }) => listed.has(peer.split("@")[0]!)) };
  const candidacy = new Candidacy({ self: options.self, clusterId, roster: unexpired, term: vote.term });`,
  }),
  mutant("grant-before-durable", "2.2 durable", {
    file: DESK,
    find: "if (decision.ledger !== null) await this.#write(decision.ledger);",
    replace: "if (decision.ledger !== null) void this.#write(decision.ledger);",
  }),
  mutant(
    "asks-before-own-grant",
    "2.5 own grant",
    {
      file: "controller/coordinators/campaign.ts",
      find: "  const answer = await context.vote(own.to, own.request);",
      replace:
        "  for (const { to, request } of candidacy.otherRequests()) void context.vote(to, request);\n  const answer = await context.vote(own.to, own.request);",
    },
    {
      file: CANDIDACY,
      find: `    assert(this.hasOwnGrant, "the candidate's own grant is durable before it asks others");\n`,
    },
  ),
  founding("releases-before-own-grant", "2.3 release", {
    file: "controller/coordinators/campaign.ts",
    find: "    if (candidacy.hasOwnGrant || voter.peer === self)\n",
    replace: "    if (candidacy.hasOwnGrant || self !== null)\n",
  }),
  mutant("term-falls-after-unobserved-vote", "2.3 terms", {
    file: VOTER,
    find: 'if (request.term <= ledger.term && !this.#holds(request)) return "term-stale";',
    replace:
      'if (request.term <= (this.#inForce(nowMs) === null ? 0 : ledger.term) && !this.#holds(request)) return "term-stale";',
  }),
  ofClocks("expiry-from-answer", "2.4 sending", {
    file: LEADING,
    find: "    this.leader.took(sent, sentAt, answer);",
    replace: "    void sentAt;\n    this.leader.took(sent, this.#context.now(), answer);",
  }),
  mutant("restart-grants-at-once", "2.3 boot wait", {
    file: VOTER,
    find: "grant === null || grant.released ? null : { holder: grant.leader, term: grant.term, untilMs };",
    replace: "null;\n    void grant;\n    void untilMs;",
  }),
  mutant(
    "wiped-voter-votes",
    "2.2 incarnation",
    {
      file: "core/lease/quorum.ts",
      find: "return voter === to.peer && clusterId === request.clusterId;",
      replace: "void voter;\n  void to;\n  return clusterId === request.clusterId;",
    },
    {
      file: VOTER,
      find: 'if (request.voter !== this.self) return "other-voter";',
    },
  ),
  ofRosters("roster-order-ignored", "2.3 roster", {
    file: VOTER,
    find: 'if (ledger.roster !== null && comparePositions(roster, ledger.roster) < 0) return "roster-stale";',
  }),
  ofRosters("change-before-previous-stored", "2.6 stored", {
    file: LEADER,
    find: "return this.isOpen(now) && this.#committed === this.#roster && this.#registry === null;",
    replace: "return this.isOpen(now) && this.#registry === null;",
  }),
  mutant(
    "two-voters-at-once",
    "2.6 one voter",
    {
      file: CHANGES,
      find: "return joiner === undefined ? null : [...voters, joiner];",
      replace: "return joiner === undefined ? null : [...voters, ...able];",
    },
    {
      file: "core/lease/roster.ts",
      find: '  assert(added + removed === 1, "one voter differs", () => `${added} added, ${removed} removed`);\n',
      replace: "  void removed;\n",
    },
  ),
  mutant("opens-before-own-roster", "2.5 own roster", {
    file: LEADER,
    find: "    this.#proofs = new Map(proofs);",
    replace: "    this.#committed = this.#roster;\n    this.#proofs = new Map(proofs);",
  }),
  mutant("release-by-anyone", "2.3 release", {
    file: VOTER,
    find: 'if (nodeIdOf(request.holder) !== caller) return "identity-mismatch";',
    replace: "void caller;\n    void nodeIdOf;",
  }),
  mutant("leave-for-another", "2.6 leave", {
    file: "controller/coordinators/coordinator.ts",
    find: "        if (members.leave(caller)) this.#leading?.hurry();",
    replace: "        members.leave(this.#context.selfId);\n        members.pause();\n        void caller;",
  }),
  ofClocks("ttl-uncapped", "2.3 TTL", {
    file: VOTER,
    find: "const askedMs = Math.min(ttlMs, LEASE_TTL_MS);",
    replace: "const askedMs = ttlMs;",
  }),
  ofClocks("renewal-shortens", "2.3 TTL", {
    file: VOTER,
    find: "const untilMs = Math.max(asked, before);",
    replace: "const untilMs = asked;\n    void before;",
  }),
  ofRegistry("registry-shown-early", "2.7 all listed", {
    file: LEADER,
    find: 'change.state === "undoing" || this.unstoredOf(change).length === 0;',
    replace: "true;",
  }),
  ofRegistry(
    "stored-is-shown",
    "2.7 mark",
    {
      file: VOTER,
      find: "if (mark === null || comparePositions(mark, stored) !== 0) return ledger.shown;",
      replace: "if (mark === null) return ledger.shown;",
    },
    {
      file: VOTER,
      find: "if (ledger.shown !== null && comparePositions(mark, ledger.shown) <= 0) return ledger.shown;",
      replace: "if (ledger.shown !== null && comparePositions(stored, ledger.shown) <= 0) return ledger.shown;",
    },
  ),
  ofRegistry("undo-by-inverse", "2.7 undo", {
    file: LEADER,
    find: "this.#advance(withRegistry(this.#roster, change.before));",
    replace: `const added = this.#roster.registry.filter((entry) => !change.before.includes(entry));
    this.#advance(withRegistry(this.#roster, this.#roster.registry.filter((entry) => !added.includes(entry))));`,
  }),
  mutant("roster-without-grant", "2.3 holder", {
    file: VOTER,
    find: '    if (!this.#holds(request)) return refused("not-holder");\n    const ledger = this.#ledger;',
    replace: `    const ledger = this.#ledger;
    if (!this.#holds(request)) {
      if (ledger.roster !== null && comparePositions(roster, ledger.roster) > 0) this.#ledger = { ...ledger, roster };
      return refused("not-holder");
    }`,
  }),
  ofRosters("roster-to-non-voters-early", "2.3 own voters", {
    file: LEADER,
    find: "if (this.#committed === null || isVoter(this.#roster, peer)) return this.#roster;\n    return this.#committed;",
    replace: "void peer;\n    return this.#roster;",
  }),
  mutant(
    "roster-not-needed",
    "2.2 missing roster",
    {
      file: CANDIDACY,
      find: 'return { to, request: { kind: "acquire", clusterId, holder, voter: to.peer, term, ttlMs: LEASE_TTL_MS, roster } };',
      replace: `const sent = to.peer === holder ? roster : null;
    return { to, request: { kind: "acquire", clusterId, holder, voter: to.peer, term, ttlMs: LEASE_TTL_MS, roster: sent } };`,
    },
    {
      file: VOTER,
      find: "    const { holder, term, roster, ttlMs, clusterId } = request;\n",
      replace:
        "    const { holder, term, ttlMs, clusterId } = request;\n    const roster = request.roster ?? this.#ledger.roster;\n",
    },
  ),
  mutant("non-voter-grants-nothing", "2.3 own rules", {
    file: VOTER,
    find: '    if (roster === null) return refused("roster-missing");\n    const reason = this.#rosterProblem(request, roster) ?? this.#grantProblem(nowMs, request, roster);',
    replace: `    if (roster === null || !isVoter(this.#ledger.roster ?? roster, this.self)) return refused("roster-missing");
    const reason = this.#rosterProblem(request, roster) ?? this.#grantProblem(nowMs, request, roster);`,
  }),
  mutant("restart-campaigns-in-its-term", "2.3 first campaign", {
    file: CANDIDACY,
    find: '  return { kind: "campaign", term: knownMax + 1 };',
    replace: `  const own = statuses.find((status) => status.self === self);
  return { kind: "campaign", term: own?.leader?.peer === self && own.leader.term === knownMax ? knownMax : knownMax + 1 };`,
  }),
  mutant("renews-without-a-grant", "2.3 acquire first", {
    file: LEADER,
    find: 'if (!this.#granted.has(to.peer)) return { to, request: { ...common, kind: "acquire" } };',
    replace: 'if (this.#granted.size === 0) return { to, request: { ...common, kind: "acquire" } };',
  }),
  ofRegistry("winner-shows-nothing", "2.7 shown on opening", {
    file: LEADER,
    find: "      if (this.#registry === null) this.#mark = position;\n",
  }),
  mutant("release-with-open-gate", "2.3 release", {
    file: LEADING,
    find: "    if (this.#hasBegun) await options.work.ends(leader.term);",
    replace: "    this.giveBack();\n    if (this.#hasBegun) await options.work.ends(leader.term);",
  }),
  mutant("holder-by-id-only", "2.2 incarnation", {
    file: VOTER,
    find: 'if (grant === null || grant.leader !== request.holder || grant.term !== request.term) return refused("not-holder");',
    replace:
      'if (grant === null || nodeIdOf(grant.leader) !== nodeIdOf(request.holder) || grant.term !== request.term) return refused("not-holder");',
  }),
  ofRosters("leave-without-majority", "2.6 leave", {
    file: CHANGES,
    find: "if (rest.length > 0 && hasMajority(rest, hasAnswered)) return rest;",
    replace: "if (rest.length > 0) return rest;\n    void hasAnswered;",
  }),
  founding("founding-by-majority-of-seeds", "2.6 founding", {
    file: "core/lease/founding.ts",
    find: "return silent.length === 0 ?",
    replace: "return 2 * silent.length < all.length ?",
  }),
  recovery("generation-ignored", "2.6 generation", {
    file: VOTER,
    find: "    this.#generation = Math.max(this.#generation, generationOf(term));",
    replace: "    void term;",
  }),
  recoveryOfFive("refused-generation-unheard", "2.6 generation", {
    file: "controller/coordinators/context.ts",
    find: 'if (outcome.kind === "refused" && outcome.reason === "generation-over")',
    replace: 'if (outcome.kind === "refused" && outcome.reason === "invalid-ttl")',
  }),
  ofCopies("ledger-outlives-its-log", "decision 67 copies", {
    file: FILES,
    find: "return itsLog === log",
    replace: "return itsLog !== log || itsLog === log",
  }),
  mutant("damaged-disk-votes-again", "decision 67 name", {
    file: FILES,
    find: "voter: peerKey(node, newIncarnation())",
    replace: "voter: peerKey(node, newIncarnation() === log ? log : log)",
  }),
  ofPlaces("moved-voter-keeps-its-address", "decision 67 moves", {
    file: LEADING,
    find: "      leader.moveVoters(now, (peer) => this.#endpointOf(peer));\n",
    replace: "      void this.#endpointOf;\n",
  }),
  ofPlaces("registers-once", "decision 67 registration", {
    file: REGISTRATION,
    find: "      await this.#underWay;\n    }",
    replace: "      await this.#underWay;\n      return;\n    }",
  }),
  ofRosters("leave-keeps-its-registration", "decision 67 leave", {
    file: MEMBERSHIP,
    find: "isMember ? await this.#departure.withdraw() :",
    replace: "!isMember ? await this.#departure.withdraw() :",
  }),
  ofRosters("leads-while-it-leaves", "decision 67 stop", {
    file: LEADING,
    find: "if (!this.#context.isWanted || desk.isLeaving) leader.release();",
    replace: "if (!this.#context.isWanted) leader.release();\n      void desk;",
  }),
  ofRosters("second-leave-brings-back", "decision 67 leave", {
    file: MEMBERSHIP,
    find: '    if (this.#hasLeft) return { kind: "left" };\n',
  }),
  ofRosters("registers-while-away", "decision 67 leave", {
    file: REGISTRATION,
    find: "if (this.#isWithdrawn || clusterId === null) return null;",
    replace: "void this.#isWithdrawn;\n    if (clusterId === null) return null;",
  }),
  ofPlaces("stop-waits-for-the-quorum", "decision 67 stop", {
    file: MEMBERSHIP,
    find: "leftMs() - LEFT_FAN_OUT_MS",
    replace: "10 * LEAVE_MS + LEFT_FAN_OUT_MS",
  }),
  ofRosters("campaigns-unwanted", "decision 67 willingness", {
    file: "controller/coordinators/coordinator.ts",
    find: "    if (!this.#context.isWanted) return false;\n",
  }),
  ofClocks("elector-proof-from-answer", "trap 44", {
    file: SEAT,
    find: "beating.resolve({ sentAt: held.provedAt });",
    replace: `const { clock } = this.#claim;
    beating.resolve({ sentAt: { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() } });`,
  }),
  mutant("elector-hears-no-end", "trap 34", {
    file: SEAT,
    find: "return this.#claim.lost(epoch, this.#whyLost(epoch));",
    replace: "return void this.#whyLost(epoch);",
  }),
  mutant("release-before-work-ends", "2.3 release", {
    file: "node/assembly/coordinators.ts",
    find: "    await this.#working;\n",
    replace: "    void this.#working;\n",
  }),
];
