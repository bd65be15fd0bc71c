// Looks at an etcd for the doctor, member by member. It grants one lease and takes it back at once; it writes no key:
// whether we may is asked with a transaction whose condition never holds, for etcd checks the rights of both its arms.

import { TenureError } from "../../core/kit/errors.ts";
import { httpWire } from "../../drivers/etcd/index.ts";
import type { EtcdSettings } from "../../electors/etcd/index.ts";
import { rangeEnd, toBase64 } from "../../electors/etcd/keys.ts";
import { EtcdSession } from "../../electors/etcd/session.ts";
import type { EtcdWire } from "../../ports/backends/etcd.ts";
import type { EtcdFacts, MemberFacts } from "./etcd.ts";
import { DOCTOR_ANSWER_MS_MAX } from "./limits.ts";
import { sampleLatency } from "./postgres-measure.ts";
import { factOf } from "./report.ts";

type Fields = Readonly<Record<string, unknown>>;

export async function lookAtEtcd(settings: EtcdSettings): Promise<EtcdFacts> {
  const { endpoints, headers, tls, prefix, credentials } = settings;
  const signal = new AbortController().signal;
  const members: MemberFacts[] = [];
  for (const endpoint of endpoints) {
    const wire = httpWire({ endpoints: [endpoint], headers, tls });
    members.push({ endpoint: endpoint.origin, status: await factOf(() => statusOf(wire, signal)) });
    wire.close();
  }
  const reachable = endpoints.filter((endpoint) =>
    members.some((member) => member.endpoint === endpoint.origin && "value" in member.status),
  );
  const base = { where: endpoints.map((url) => url.host).join(","), settings, members };
  // Without a leader each of these would take seconds to be refused.
  if (!members.some(({ status }) => "value" in status && status.value.hasLeader)) {
    const never = { unknown: "no endpoint answers, or none knows a leader" };
    return { ...base, access: never, grantedTtlSeconds: never, alarms: never, latency: never };
  }
  const wire = httpWire({ endpoints: reachable, headers, tls });
  const session = new EtcdSession(wire, credentials, DOCTOR_ANSWER_MS_MAX);
  try {
    const access = await factOf(() => accessOf(session, prefix, signal));
    const isRefused = "value" in access && access.value !== null;
    const refused = { unknown: "the user may not" };
    return {
      ...base,
      access,
      alarms: await factOf(() => alarmsOf(wire, signal)),
      grantedTtlSeconds: isRefused ? refused : await factOf(() => leaseOf(session, settings.ttlSeconds, signal)),
      latency: isRefused ? refused : await factOf(() => sampleLatency(() => session.get(`${prefix}~doctor`, signal))),
    };
  } finally {
    session.close();
  }
}

/** Answered by the member itself, also without a quorum, and without a login. */
async function statusOf(wire: EtcdWire, signal: AbortSignal) {
  const body = await call(wire, "/v3/maintenance/status", {}, signal);
  if (typeof body["version"] !== "string") {
    throw new TenureError("BACKEND_UNSUPPORTED", "something answers there, but not as etcd does: it tells no version.");
  }
  return {
    version: body["version"],
    hasLeader: Number(body["leader"] ?? 0) !== 0,
    dbBytes: Number(body["dbSize"] ?? 0),
  };
}

async function alarmsOf(wire: EtcdWire, signal: AbortSignal): Promise<string[]> {
  const body = await call(wire, "/v3/maintenance/alarm", { action: "GET" }, signal);
  const alarms = Array.isArray(body["alarms"]) ? (body["alarms"] as Fields[]) : [];
  return [...new Set(alarms.map((one) => (typeof one["alarm"] === "string" ? one["alarm"] : "unknown")))];
}

async function call(wire: EtcdWire, path: string, request: object, signal: AbortSignal): Promise<Fields> {
  const answer = await wire.call(path, request, { token: undefined, timeoutMs: DOCTOR_ANSWER_MS_MAX, signal });
  if (answer.kind === "answer") return answer.body as Fields;
  throw new TenureError("BACKEND_UNAVAILABLE", `etcd refused ${path}: ${answer.message}`);
}

/** Null where all is allowed; else what etcd said. */
async function accessOf(session: EtcdSession, prefix: string, signal: AbortSignal): Promise<string | null> {
  const key = toBase64(`${prefix}~doctor`);
  const all = { key: toBase64(prefix), range_end: rangeEnd(prefix), limit: "1", keys_only: true };
  try {
    await session.txn(
      {
        // A version can't be negative.
        compare: [{ key, target: "VERSION", result: "LESS", version: "0" }],
        success: [{ request_put: { key, value: "" } }],
        failure: [{ request_range: all }],
      },
      signal,
    );
    return null;
  } catch (error) {
    if (TenureError.is(error) && error.code === "PERMISSION_DENIED") return error.message;
    throw error;
  }
}

async function leaseOf(session: EtcdSession, ttlSeconds: number, signal: AbortSignal): Promise<number> {
  const { lease, ttlSeconds: granted } = await session.grant(ttlSeconds, signal);
  await session.revoke(lease, signal);
  return granted;
}
