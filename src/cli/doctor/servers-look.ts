// Looks at Tenure's own servers for the doctor, node by node. It reads and writes nothing.

import { TenureError } from "../../core/kit/errors.ts";
import { serversHttpWire } from "../../drivers/servers/index.ts";
import type { ServersSettings } from "../../electors/servers/index.ts";
import { refusalOf } from "../../electors/servers/refusals.ts";
import type { ServersAnswer, ServersWire } from "../../ports/backends/servers.ts";
import { DOCTOR_ANSWER_BYTES_MAX, DOCTOR_ANSWER_MS_MAX } from "./limits.ts";
import { sampleLatency } from "./postgres-measure.ts";
import { factOf } from "./report.ts";
import type { NodeFacts, NodeView, ServersFacts } from "./servers.ts";

type Fields = Readonly<Record<string, unknown>>;

export async function lookAtServers(settings: ServersSettings): Promise<ServersFacts> {
  const { urls, key, tls } = settings;
  const wire = serversHttpWire({ key, tls });
  try {
    const nodes: NodeFacts[] = await Promise.all(
      urls.map(async (url) => ({
        url,
        view: await factOf(async () => viewOf(await ask(wire, url, "/v1/cluster"))),
        anonymousRoles: await factOf(() => anonymousRoles(wire, url)),
      })),
    );
    const base = { where: urls.map((url) => new URL(url).host).join(","), settings, nodes };
    const best = nodes.find(({ view }) => "value" in view && view.value.leaderId !== null);
    if (best === undefined) return { ...base, latency: { unknown: "no node answers, or none knows a leader" } };
    const read = (): Promise<unknown> => ask(wire, best.url, "/leader?consistency=linearizable");
    return { ...base, latency: await factOf(() => sampleLatency(read)) };
  } finally {
    wire.close();
  }
}

function limits() {
  const { signal } = new AbortController();
  return { timeoutMs: DOCTOR_ANSWER_MS_MAX, bytesMax: DOCTOR_ANSWER_BYTES_MAX, signal };
}

async function ask(wire: ServersWire, url: string, path: string): Promise<Fields> {
  const answer: ServersAnswer = await wire.ask(url, { method: "GET", path, body: null, ...limits() });
  if (answer.status === 200) return answer.body;
  throw refusalOf(answer, url).error;
}

/** A node in trouble says so with 503, and this all the same; one of an older release does not say it. */
async function anonymousRoles(wire: ServersWire, url: string): Promise<readonly string[]> {
  const { status, body } = await wire.ask(url, { method: "GET", path: "/healthz", body: null, ...limits() });
  const roles = body["anonymous_roles"];
  if (Array.isArray(roles)) return roles.map(textOf);
  throw new TenureError("BACKEND_UNSUPPORTED", `${url} answered ${status} and does not say who is let in unknown.`);
}

function viewOf(body: Fields): NodeView {
  const leader = body["leader"] as Fields | null | undefined;
  const members = Array.isArray(body["members"]) ? (body["members"] as Fields[]) : [];
  const alerts = Array.isArray(body["alerts"]) ? (body["alerts"] as Fields[]) : [];
  if (typeof body["cluster_id"] !== "string" || members.length === 0) {
    throw new TenureError("BACKEND_UNSUPPORTED", "something answers there, but not as a server of Tenure does.");
  }
  return {
    clusterId: body["cluster_id"],
    nodeId: textOf(body["node_id"]),
    version: textOf(body["version"]),
    leaderId: leader === null || leader === undefined ? null : textOf(leader["node_id"]),
    backend: body["backend"] === "postgres" ? "postgres" : "raft",
    voters: members
      .filter((one) => one["kind"] === "voter" || one["kind"] === "node")
      .map((one) => textOf(one["node_id"])),
    alerts: alerts.map((one) => ({
      name: textOf(one["name"]),
      severity: textOf(one["severity"]),
      message: textOf(one["message"]),
    })),
  };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "unknown";
}
