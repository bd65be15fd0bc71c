// For probes and scrapers. /livez: the process answers. /readyz: this node serves; it never fails because another node
// leads (trap 47: a rolling update would deadlock). /healthz: what an operator should know.

import { toSnake } from "../../contract/index.ts";
import type { ClusterView } from "../../ports/cluster.ts";
import type { Handlers, Service } from "./handler.ts";

const UNAVAILABLE = 503;

export function probeHandlers(service: Service): Pick<Handlers, "livez" | "readyz" | "healthz" | "metrics"> {
  return {
    livez: () => ({ body: { status: "ok" } }),
    readyz: () => {
      const reason = service.isStopping() ? "the node is stopping" : notReady(service.cluster.view());
      if (reason === null) return { body: { status: "ok", reason } };
      return { status: UNAVAILABLE, body: { status: "not_ready", reason }, headers: { "retry-after": "1" } };
    },
    healthz: () => {
      const view = service.cluster.view();
      const { nodeId, role, isReady, alerts } = view;
      const status = healthOf(view);
      return {
        status: status === "critical" ? UNAVAILABLE : undefined,
        body: toSnake({ status, nodeId, role, isReady, alerts, anonymousRoles: service.anonymousRoles() }),
      };
    },
    metrics: async () => {
      const { contentType, text } = await service.metrics();
      return { body: text, contentType };
    },
  };
}

function notReady({ isReady, notReadyReason, disk }: ClusterView): string | null {
  if (!isReady) return notReadyReason ?? "the node has not caught up with the cluster yet";
  if (disk.state === "stalled") return "the disk does not answer: check it, and the node's log";
  return null;
}

function healthOf({ alerts, isReady }: ClusterView): "ok" | "degraded" | "critical" {
  if (alerts.some(({ severity }) => severity === "critical")) return "critical";
  return alerts.length > 0 || !isReady ? "degraded" : "ok";
}
