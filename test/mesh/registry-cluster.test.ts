// The registry of sites on three real nodes: nothing is written before the last of them can read it, and a new leader knows the sites
// and starts their time anew.

import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { CALM_ELECTION, OPERATOR_KEY as key, startTenureCluster, type TenureNode, waitFor } from "../servers/index.ts";
import { writePlant } from "../servers/planted.ts";

const LIMIT_MS = 240_000;
const TTL_MS = 20_000;
const B = { id: "site-b", url: "http://127.0.0.1:9", name: "B" };

test(
  "sites are registered once every node reads that, and the next leader starts their time anew",
  { timeout: LIMIT_MS },
  async () => {
    const cluster = await startTenureCluster({
      election: CALM_ELECTION,
      prepare: (node) => {
        node.configure({
          mesh: {
            mode: "distributed",
            controller_id: "berlin",
            registration_ttl_ms: TTL_MS,
            heartbeat_interval_ms: 1_000,
            expiration_check_interval_ms: 200,
          },
        });
        if (node.id !== "n3") return;
        // A release that speaks no protocol 5 has no such record.
        const edit = { file: "drivers/wire/handshake/hello.ts", find: "PROTOCOL_MAX = 7", replace: "PROTOCOL_MAX = 4" };
        node.nodeFlags = writePlant(join(node.home, "plant.mjs"), [edit]);
      },
    });
    onTestFinished(() => cluster.end());
    const leader = async (): Promise<TenureNode> => cluster.node(await cluster.leader());
    const register = async () => (await leader()).call("/api/controllers/register", { key, body: B });
    const early = await register();
    expect([early.status, JSON.stringify(early.body)]).toEqual([501, expect.stringContaining("n3")]);
    const [last] = cluster.nodes.slice(-1);
    last!.nodeFlags = [];
    await last!.restart();
    await cluster.steady();
    await waitFor("the registration", async () => (await register()).status === 200);
    const statusAt = async (node: TenureNode): Promise<string> => {
      const { body } = await node.call("/api/controllers?all=true", { key });
      const { controllers } = body as { controllers: { id: string; status: string }[] };
      return controllers.find(({ id }) => id === "site-b")?.status ?? "unknown";
    };
    for (const node of cluster.nodes) await waitFor("all nodes", async () => (await statusAt(node)) === "registered");
    await new Promise((resume) => setTimeout(resume, TTL_MS / 2));
    await (await leader()).restart();
    const startedMs = Date.now();
    const next = await leader();
    const isExpired = async (): Promise<boolean> => (await statusAt(next)) === "expired";
    await waitFor("the registration to expire at the next leader", isExpired, LIMIT_MS);
    expect(Date.now() - startedMs).toBeGreaterThan(TTL_MS * 0.7);
  },
);
