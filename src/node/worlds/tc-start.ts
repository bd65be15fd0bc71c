// What a transaction coordinator checks at its start and only files or the network can answer: who this node is, and whether it meets anybody. What
// the configuration alone can be wrong about is in contract/config/tc.ts.
//
//   coordinatorIdentity   first, before anything is opened; again for certificates that replace those in use (`sameIdentity`)
//   announceOnce          once the API answers: a seed that takes the announcement asks there at once

import { hash, X509Certificate } from "node:crypto";
import type { ServerConfig, TcConfig } from "../../contract/index.ts";
import { COORDINATOR_CALL_MS } from "../../controller/coordinators/limits.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { NODE_ID_BYTES_MAX } from "../../controller/cluster/limits.ts";
import { serverNamed, uriNames } from "../../core/kit/spiffe.ts";
import { answerOf } from "../../core/lease/wire-answers.ts";
import { callOf } from "../../core/lease/wire-calls.ts";
import type { TcHttp } from "../../drivers/coordinators/index.ts";
import { pause } from "../../loops/time.ts";
import type { Clock } from "../../ports/clock.ts";
import { pem, trustDomainOf } from "./api.ts";
import { ANNOUNCED_AGAIN_MS, ANNOUNCED_MS } from "./limits.ts";

/** Of a certificate's uses: to say who a client is. */
const CLIENT_AUTH = "1.3.6.1.5.5.7.3.2";

type OfNode = Pick<ServerConfig, "api" | "peer" | "nodeId">;

/**
 * This node among coordinators: the node id in the API's certificate. Without TLS, which only a node alone may be, it is made of its address. Throws
 * CERTIFICATE_INVALID, also where the certificate is another node's: two nodes that show one identity take each other's place among the voters.
 */
export function coordinatorIdentity(config: OfNode, endpoint: string): string {
  const { nodeId, api } = config;
  const found = certified(config, endpoint);
  if (api.tls === null || found === nodeId) return found;
  throw unusable(api.tls.certFile, `it is the certificate of node ${found}, and this node is ${nodeId} (node_id)`);
}

function certified(config: OfNode, endpoint: string): string {
  const { tls } = config.api;
  if (tls === null) return identityOfEndpoint(endpoint);
  const { subjectAltName, uses } = read(tls.certFile);
  const named = serverNamed(uriNames(subjectAltName), trustDomainOf(config));
  if (!named.ok) throw unusable(tls.certFile, named.message);
  if (uses !== undefined && !uses.includes(CLIENT_AUTH)) {
    throw unusable(
      tls.certFile,
      "the certificate is for servers alone, and a coordinator shows it to others as a client",
    );
  }
  return named.nodeId;
}

/** SHA-256 in hex; the last digit is left out, for a node id has at most 63 characters. */
export function identityOfEndpoint(endpoint: string): string {
  return hash("sha256", endpoint).slice(0, NODE_ID_BYTES_MAX);
}

/** Of certificates that are read again: another identity would be another member. Throws CERTIFICATE_INVALID, and has changed nothing. */
export function sameIdentity(config: OfNode, endpoint: string, identity: string): void {
  const found = certified(config, endpoint);
  if (found === identity) return;
  const text = `the API's certificate is now one of node ${found}, and this node is the coordinator ${identity}. Issue it for the same node id (\`tenure cert issue --node-id ${identity}\`), or restart the node to let it join as ${found}.`;
  throw new TenureError("CERTIFICATE_INVALID", text);
}

function read(file: string): {
  readonly subjectAltName: string | undefined;
  readonly uses: readonly string[] | undefined;
} {
  try {
    // The types do not say so: a certificate may name no uses, and then has all of them.
    const { subjectAltName, keyUsage: uses }: Omit<X509Certificate, "keyUsage"> & { keyUsage?: readonly string[] } =
      new X509Certificate(pem(file));
    return { subjectAltName, uses };
  } catch (error) {
    if (TenureError.is(error)) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new TenureError("CERTIFICATE_INVALID", `${file} is no certificate: ${why}.`, { cause: error });
  }
}

function unusable(file: string, why: string): TenureError {
  const text = `api.tls.cert_file ${file} can't be a transaction coordinator's (tc.join): ${why}. Issue one with \`tenure cert issue --node-id ID --host HOST\`, with an id that no node of any other island has; \`tenure cert show ${file}\` shows this one.`;
  return new TenureError("CERTIFICATE_INVALID", text);
}

export interface Announcing {
  readonly http: Pick<TcHttp, "tried">;
  readonly clock: Clock;
  /** The node is stopped: nothing is waited for any more. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * At least one node of `join` takes this node's announcement, or the start fails (BACKEND_UNAVAILABLE, exit 69): a node that meets nobody would wait
 * for ever, in silence. With this node's own URL among them there is nothing to check. Only at the start.
 */
export async function announceOnce({ endpoint, join }: TcConfig, around: Announcing): Promise<void> {
  if (join.includes(endpoint)) return;
  const { clock, signal } = around;
  const untilMs = clock.monotonicMs() + ANNOUNCED_MS;
  for (;;) {
    const failures = await Promise.all(join.map((seed) => failureOfAnnouncing(seed, endpoint, around.http)));
    if (failures.includes(null)) return;
    if (clock.monotonicMs() >= untilMs) throw nobodyAnswers(endpoint, failures);
    if (!(await pause(clock, ANNOUNCED_AGAIN_MS, signal))) return;
  }
}

/** Null: the seed has taken the announcement. */
async function failureOfAnnouncing(seed: string, endpoint: string, http: Announcing["http"]): Promise<string | null> {
  const request = { kind: "announce", endpoint } as const;
  const answer = await http.tried({ endpoint: seed, ...callOf(request), withinMs: COORDINATOR_CALL_MS });
  if (TenureError.is(answer)) return answer.message;
  if (answerOf(request, answer) !== null) return null;
  const { error, message } = answer.body;
  const said =
    typeof message === "string" ? message : `${typeof error === "string" ? error : "nothing of a coordinator"}.`;
  return `${seed} answers ${answer.status}: ${said}`;
}

function nobodyAnswers(endpoint: string, failures: readonly (string | null)[]): TenureError {
  return new TenureError(
    "BACKEND_UNAVAILABLE",
    `No node of tc.join has taken the announcement of this one within ${ANNOUNCED_MS / 1_000} s. ${failures.join(" ")} Start one of them first, or correct tc.join (--join, TENURE_TC_JOIN); the first node of all names its own URL there too, ${endpoint}.`,
  );
}
