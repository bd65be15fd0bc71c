// The API of a node of the test store: production's own server (src/api) over this node's consensus, with keys that are part
// of the store. It serves what a node says of itself, to whoever has a key; so keys are shown to nodes that do not know them
// yet, as they are to real servers.

import { createHash } from "node:crypto";
import { createApi } from "../../src/api/index.ts";
import type { ConsensusNode } from "../../src/node/worlds/consensus.ts";
import { isConfirmedLeader } from "../../src/controller/cluster/cluster-view.ts";
import type { ApiRole } from "../../src/core/kit/api-role.ts";
import { incarnationOf, nodeIdOf } from "../../src/core/kit/ids.ts";
import { isJoint, isMember, members, type RaftStatus } from "../../src/core/raft/index.ts";
import { systemClock } from "../../src/drivers/system/clock.ts";
import type { Cluster, ClusterView } from "../../src/ports/cluster.ts";
import type { Keys, KeyView } from "../../src/ports/keys.ts";
import { keyEntry } from "./api-keys.ts";
import type { KvMachine } from "./machine.ts";

const HOST = "127.0.0.1";
/** How long a leader without contact to a quorum still says that it leads. */
const CONTENT_MS = 300;

export async function serveApi(node: ConsensusNode, machine: KvMachine, port: number): Promise<void> {
  const cluster = new KvClusterView(node.engine);
  const keys: Pick<Keys, "find" | "list"> = { find: (sha256) => keyIn(machine, sha256), list: () => [] };
  const api = await createApi({
    cluster: cluster as unknown as Cluster,
    scopes: part("scopes"),
    values: part("values"),
    jobs: {
      jobs: part("jobs", { isDraining: () => false }),
      views: part("views"),
      events: part("events"),
      keys: part("keys", keys),
      certificates: part("certificates", { isRevoked: () => false, revoked: () => [] }),
      controllers: part("controllers"),
    },
    nodeId: nodeIdOf(node.engine.peer),
    clusterId: "kv",
    keys: [],
    trustDomain: "kv",
    // Nobody is let in without a key.
    isLoopback: false,
    metrics: () => Promise.resolve({ contentType: "text/plain", text: "" }),
    diagnostics: () => ({ runtime: "", uptimeMs: 0, rssBytes: 0, config: {}, logLines: [] }),
    logger: SILENT,
    audit: SILENT,
    clock: systemClock,
    sha256: (text) => createHash("sha256").update(text).digest("hex"),
    parseTime: (text) => Date.parse(text),
  });
  await api.listen({ host: HOST, port });
}

/** A port of which the store has only this: whoever registers a listener is never called, and everything else throws by name. */
function part<T extends object>(name: string, has: Partial<NoInfer<T>> = {}): T {
  const absent = (method: string) => (): void => {
    if (!/^on[A-Z]/.test(method)) throw new Error(`the test store has no ${name}.${method}`);
  };
  return new Proxy(has, {
    get: (target, method) => Reflect.get(target, method) ?? (typeof method === "string" ? absent(method) : undefined),
  }) as T;
}

const SILENT = { info: () => undefined, warn: () => undefined, error: () => undefined };

function keyIn(machine: KvMachine, sha256: string): KeyView | null {
  const role = machine.get(keyEntry(sha256));
  if (role === null) return null;
  return { name: sha256.slice(0, 8), role: Buffer.from(role).toString() as ApiRole, createdAtMs: 0, createdBy: "test" };
}

/** As controller/cluster/cluster.ts has it, without health, beacons and steering. */
class KvClusterView implements Pick<Cluster, "view" | "currentRole" | "line" | "catchUp"> {
  readonly #engine: ConsensusNode["engine"];
  #hasCaughtUp = false;

  constructor(engine: ConsensusNode["engine"]) {
    this.#engine = engine;
  }

  currentRole(): ClusterView["role"] {
    return roleOf(this.#engine.status());
  }

  line(): ReturnType<Cluster["line"]> {
    return { ancestors: [], isPaused: false };
  }

  view(): ClusterView {
    const status = this.#engine.status();
    const { peer, term, leader, commit, applied, firstIndex, lastIndex, configuration } = status;
    if (status.freshAsOfMs > 0 || (status.role === "leader" && status.established)) this.#hasCaughtUp = true;
    const isReady = this.#hasCaughtUp && isMember(configuration, peer);
    return {
      clusterId: "kv",
      nodeId: nodeIdOf(peer),
      incarnation: incarnationOf(peer),
      version: "0",
      backend: "raft",
      role: roleOf(status),
      term,
      leader: leader === null ? null : { nodeId: nodeIdOf(leader), address: null, url: null },
      commit,
      applied,
      firstIndex,
      lastIndex,
      stalenessMs: null,
      isJoint: isJoint(configuration),
      members: members(configuration).map((member) => ({
        nodeId: nodeIdOf(member),
        incarnation: incarnationOf(member),
        kind: "voter" as const,
        isLeader: member === leader,
        address: null,
        url: null,
        isConnected: true,
        refusal: null,
        progress: null,
      })),
      elections: [],
      alerts: [],
      snapshot: null,
      disk: { state: "ok", freeBytes: null },
      ancestors: [],
      isPaused: false,
      isDraining: false,
      isReady,
      notReadyReason: isReady ? null : "has not caught up with the cluster yet",
    };
  }

  async catchUp(timeoutMs: number): Promise<boolean> {
    return (await this.#engine.readIndex(timeoutMs)) !== null;
  }
}

function roleOf(status: RaftStatus): ClusterView["role"] {
  return isConfirmedLeader(status, systemClock.monotonicMs(), CONTENT_MS) ? "LEADER" : "STANDBY";
}
