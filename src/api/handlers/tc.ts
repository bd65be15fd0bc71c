// The routes of the transaction coordinators. Who calls is the server of the certificate: a call can change this caller's leases, and no other's.
//
// Announce and leave mean two things. By another node: its membership lease here, and nothing else. By this node's own certificate, as `tenure tc` on its
// machine has it: this node is a member again, or leaves its cluster.

import type { TC_ROUTES } from "../../contract/index.ts";
import { nodeIdOf } from "../../core/kit/ids.ts";
import type { VoterRequest } from "../../core/lease/model.ts";
import { doneBody, registryBody, statusBody, unixSeconds } from "../../core/lease/wire-answers.ts";
import { acquireOf, FORWARDED_HEADERS, LEAVE_FANOUT_HEADERS, releaseOf, renewOf } from "../../core/lease/wire-calls.ts";
import type { Coordinators, LeaveResult, MembersView } from "../../ports/coordinators.ts";
import { Refusal } from "../refusal.ts";
import type { Answer, Call, Handlers, Service } from "./handler.ts";
import { islandsShown, voterShown } from "./islands.ts";
import { serverIdOf } from "./tc-caller.ts";
import { refusedChange, refusedLease } from "./tc-refusals.ts";

type Ids = keyof typeof TC_ROUTES;

export function tcHandlers(service: Service): Pick<Handlers, Ids> {
  return {
    tcLeader: () => ({ body: statusBody(present(service).view()) }),
    tcAcquire: ({ caller, body }) => vote(service, serverIdOf(caller), acquireOf(body)),
    tcRenew: ({ caller, body }) => vote(service, serverIdOf(caller), renewOf(body)),
    tcRelease: ({ caller, body }) => vote(service, serverIdOf(caller), releaseOf(body)),
    tcAnnounce: (call) => announce(service, call),
    tcLeave: (call) => leave(service, call),
    tcMembers: () => ({ body: membersList(running(service).members()) }),
    tcRegister: (call) => changeRegistry(service, call, "register"),
    tcUnregister: (call) => changeRegistry(service, call, "unregister"),
    tcBackends: () => ({ body: backends(running(service)) }),
    islands: () => ({ body: islandsShown(running(service), service.transactions) }),
  };
}

function running({ coordinators, nodeId }: Service): Coordinators {
  if (coordinators !== undefined) return coordinators;
  throw new Refusal(
    "tc_unavailable",
    `Node ${nodeId} runs no transaction coordinator. Give it others to join ([tc] join, --join), or ask another node.`,
  );
}

/** One that left says nothing of who leads: it takes no part. */
function present(service: Service): Coordinators {
  const coordinators = running(service);
  if (!coordinators.view().hasLeft) return coordinators;
  throw new Refusal(
    "tc_unavailable",
    `Node ${service.nodeId} left the cluster of coordinators. Announce it again, or ask another node.`,
  );
}

async function vote(service: Service, caller: string, request: VoterRequest): Promise<Answer> {
  const coordinators = running(service);
  const answer = await coordinators.answer(caller, request);
  const { outcome } = answer;
  if (outcome.kind === "refused") throw refusedLease(coordinators, caller, request, answer, outcome.reason);
  return { body: doneBody(request, answer, outcome.lastsMs, service.clock.wallMs()) };
}

async function announce(service: Service, { caller, body, audit }: Call<"tcAnnounce">): Promise<Answer> {
  const identity = serverIdOf(caller);
  const coordinators = running(service);
  const endpoint = body.self_endpoint;
  let endpoints: readonly string[];
  if (identity === nodeIdOf(coordinators.self)) {
    // Another process with this node's certificate must not bring it back after it left.
    if (plain(endpoint) !== coordinators.endpoint) throw otherEndpoint(identity, coordinators);
    audit("tcRejoin", identity);
    await coordinators.rejoin();
    ({ endpoints } = coordinators.members());
  } else ({ endpoints } = await coordinators.answer(identity, { kind: "announce", endpoint }));
  const { leases, updatedAtMs } = coordinators.members();
  const expiresAtMs = leases.find((lease) => lease.identity === identity)?.expiresAtMs ?? updatedAtMs;
  const times = { updated_at_unix: unixSeconds(updatedAtMs), expires_at_unix: unixSeconds(expiresAtMs) };
  return { body: { endpoints, ...times } };
}

function otherEndpoint(identity: string, { endpoint }: Coordinators): Refusal {
  const text = `${identity} is this node, and its endpoint is ${endpoint} (api.advertise). If another process has its certificate, give that one its own.`;
  return new Refusal("invalid_self_endpoint", text, { field: "self_endpoint" });
}

async function leave(service: Service, { caller, header, audit }: Call<"tcLeave">): Promise<Answer> {
  const identity = serverIdOf(caller);
  const coordinators = running(service);
  const isFannedOut = LEAVE_FANOUT_HEADERS.some((name) => isSet(header(name)));
  if (identity !== nodeIdOf(coordinators.self) || isFannedOut) {
    const { endpoints } = await coordinators.answer(identity, { kind: "leave" });
    return { body: { endpoints, updated_at_unix: unixSeconds(coordinators.members().updatedAtMs) } };
  }
  audit("tcLeave", identity);
  requireLeft(service.nodeId, await coordinators.leave());
  return { body: membersShown(coordinators.members()) };
}

function requireLeft(nodeId: string, result: LeaveResult): void {
  if (result.kind === "left") return;
  const why =
    result.kind === "refused"
      ? result.message
      : "it is the only voter of its cluster. Stop it instead; or let another node join first.";
  throw new Refusal("tc_cluster_unavailable", `Node ${nodeId} has not left, and is a member as before: ${why}`);
}

async function changeRegistry(
  service: Service,
  { caller, body, header }: Call<"tcRegister" | "tcUnregister">,
  change: "register" | "unregister",
): Promise<Answer> {
  const identity = serverIdOf(caller);
  const entry = { backendHash: body.backend_hash, endpoint: plain(body.endpoint) };
  const isForwarded = FORWARDED_HEADERS.some((name) => isSet(header(name)));
  const answer = await running(service).answer(identity, { kind: "registry", change, entry, isForwarded });
  if (answer.kind !== "done") throw refusedChange(service.nodeId, answer);
  return { body: registryBody(entry.backendHash, answer.registry, service.clock.wallMs()) };
}

function membersShown({ endpoints, updatedAtMs }: MembersView): object {
  return { endpoints, updated_at_unix: unixSeconds(updatedAtMs) };
}

function membersList(members: MembersView): object {
  const { voters, quorum, roster } = members;
  return { ...membersShown(members), voters: voters.map(voterShown), quorum, roster };
}

function backends(coordinators: Coordinators): object {
  const { entries, updatedAtMs } = coordinators.registry();
  const byHash = Map.groupBy(entries, ({ backendHash }) => backendHash);
  const shown = [...byHash].map(([hash, all]) => ({
    backend_hash: hash,
    endpoints: all.map(({ endpoint }) => endpoint),
  }));
  return { backends: shown, updated_at_unix: unixSeconds(updatedAtMs) };
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value.trim() !== "";
}

/** One address has one spelling. */
function plain(url: string): string {
  return url.replace(/\/$/, "");
}
