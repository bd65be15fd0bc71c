// `tenure tc list|leader`: what the node that answers knows. A certificate of a coordinator's kind is asked about by /v1/tc; whoever has only a key, or
// another certificate, is answered the same by /v1/islands.

import type {
  BackendsView,
  ClientCoordinators,
  LeadingCoordinatorView,
  IslandsView,
  MembersListView,
} from "../../client/index.ts";
import { ERRORS } from "../../core/kit/errors.ts";
import { clientOf, type Connection } from "../connection/connection.ts";
import type { Paint } from "../kit/colour.ts";
import { columns, isoTime, json, printable, table, timeOrNull } from "../kit/output.ts";
import { printed, stdoutPaint } from "../kit/print.ts";
import { shownIdentity } from "./certificate.ts";

/** Whose certificates the routes of coordinators take. */
const KINDS: readonly string[] = ["tc", "server", "operator"];

/** What of a node's view is asked for. */
type Known = Omit<ClientCoordinators, "islands">;

export function knownBy(connection: Connection): Known {
  const { coordinators } = clientOf(connection);
  if (KINDS.includes(shownIdentity(connection)?.kind ?? "")) return coordinators;
  return {
    leader: async (options) => leaderIn(await coordinators.islands(options)),
    members: async (options) => membersIn(await coordinators.islands(options)),
    backends: async (options) => backendsIn(await coordinators.islands(options)),
  };
}

/** For scripts: where nobody leads, the exit code says so. */
export async function showLeader(connection: Connection): Promise<number> {
  const view = await knownBy(connection).leader();
  printed(connection.output === "json" ? json(leaderObject(view)) : leaderText(view));
  return view.leaderId === null ? ERRORS.ERR_NO_LEADER.exit : 0;
}

export async function showMembers(connection: Connection): Promise<number> {
  const view = await knownBy(connection).members();
  return printed(connection.output === "json" ? json(membersObject(view)) : membersText(view, stdoutPaint()));
}

// ---- from the view of everything -------------------------------------------------------------------

function leaderIn({ leader, self, waitsFor }: IslandsView): LeadingCoordinatorView {
  const { identity, incarnation, tcClusterId, backendHash, term, roster, leaving } = self;
  return {
    leaderId: leader?.identity ?? null,
    leaderIncarnation: leader?.incarnation ?? null,
    leaderEndpoint: leader?.endpoint ?? null,
    term: leader?.term ?? null,
    expiresAt: leader?.expiresAtMs ?? null,
    self: { identity, incarnation, tcClusterId, backendHash, term, roster, leaving, waitsFor },
  };
}

function membersIn({ members, voters, quorum, roster }: IslandsView): MembersListView {
  const endpoints = [...new Set(members.map(({ endpoint }) => endpoint))].toSorted();
  const updatedMs = Math.max(0, ...members.map(({ updatedAtMs }) => updatedAtMs));
  return { endpoints, updatedAtUnix: Math.floor(updatedMs / 1_000), voters, quorum, roster };
}

function backendsIn({ registry, registryUpdatedAtMs }: IslandsView): BackendsView {
  const byHash = Map.groupBy(registry, ({ backendHash }) => backendHash);
  const backends = [...byHash].map(([backendHash, entries]) => ({
    backendHash,
    endpoints: entries.map(({ endpoint }) => endpoint),
  }));
  return { backends, updatedAtUnix: Math.floor(registryUpdatedAtMs / 1_000) };
}

// ---- shown -----------------------------------------------------------------------------------------

function leaderObject({
  leaderId,
  leaderIncarnation,
  leaderEndpoint,
  term,
  expiresAt,
  self,
}: LeadingCoordinatorView): object {
  return {
    leader_id: leaderId,
    leader_incarnation: leaderIncarnation,
    leader_endpoint: leaderEndpoint,
    term,
    expires_at: timeOrNull(expiresAt),
    self: {
      identity: self.identity,
      incarnation: self.incarnation,
      tc_cluster_id: self.tcClusterId,
      backend_hash: self.backendHash,
      term: self.term,
      roster: self.roster,
      leaving: self.leaving,
      waits_for: self.waitsFor,
    },
  };
}

function leaderText({
  leaderId,
  leaderIncarnation,
  leaderEndpoint,
  term,
  expiresAt,
  self,
}: LeadingCoordinatorView): string {
  const { roster, waitsFor } = self;
  const leader =
    leaderId === null
      ? [["leader", "nobody, as far as this node knows"]]
      : [
          [
            "leader",
            `${leaderId}@${leaderIncarnation ?? "?"} at ${leaderEndpoint ?? "an address that is not known here"}`,
          ],
          ["term", `${term ?? "?"}`],
          ["lease until", expiresAt === null ? "-" : isoTime(expiresAt)],
        ];
  const rows = [
    ...leader,
    ["this node", `${self.identity}@${self.incarnation}${self.leaving ? ", leaving" : ""}`],
    ["island", self.backendHash],
    ["cluster", self.tcClusterId ?? "none yet"],
    ["roster", roster === null ? "none yet" : `term ${roster.term}, version ${roster.version}`],
    ...(waitsFor.length === 0 ? [] : [["waits for", `${waitsFor.join(", ")} (or tenure tc found)`]]),
  ];
  return columns(rows.map((row) => row.map(printable)));
}

function membersObject({ endpoints, updatedAtUnix, voters, quorum, roster }: MembersListView): object {
  return { endpoints, updated_at: secondsOrNull(updatedAtUnix), voters, quorum, roster };
}

/** Voters first: a member that is no voter waits to be admitted. */
function membersText({ endpoints, voters, quorum, roster }: MembersListView, paint: Paint): string {
  const known = new Set(endpoints);
  const isVoting = new Set(voters.map(({ endpoint }) => endpoint));
  const rows = [
    ...voters.map(({ identity, incarnation, endpoint, state }) => [
      endpoint,
      `${identity}@${incarnation}`,
      state,
      known.has(endpoint) ? "yes" : "no",
    ]),
    ...endpoints.filter((endpoint) => !isVoting.has(endpoint)).map((endpoint) => [endpoint, "-", "-", "yes"]),
  ].map((row) => row.map(printable));
  const needed =
    roster === null
      ? "no roster: this node is in no cluster of coordinators yet\n"
      : `a leader needs ${quorum} of ${voters.length} voters (roster of term ${roster.term}, version ${roster.version})\n`;
  const isElsewhere = voters.length > 0 && voters.every(({ state }) => state === "unknown");
  const elsewhere = isElsewhere ? "STATE is what the leader knows: ask it (`tenure tc leader` names it)\n" : "";
  return `${table(["URL", "VOTER", "STATE", "LISTED"], rows, paint)}${needed}${elsewhere}`;
}

export function secondsOrNull(unix: number): string | null {
  return unix === 0 ? null : isoTime(unix * 1_000);
}
