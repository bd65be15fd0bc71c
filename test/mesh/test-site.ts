// A site of real servers that is distributed, what happens there, and a server in front of it that changes what it says.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tenure } from "../cli/test-tenure.ts";
import { CALM_ELECTION, OPERATOR_KEY, startTenureCluster, type TenureCluster, waitFor } from "../servers/index.ts";
import type { TenureNode } from "../servers/index.ts";

export interface Audited {
  readonly valid: boolean;
  readonly ring?: string;
  readonly pinned?: boolean;
  readonly sequence?: number | null;
  readonly problem?: string;
  readonly lines?: readonly {
    readonly generation: number;
    readonly first: number;
    readonly through: number;
    readonly withheld: number;
    readonly ring_changes: number;
  }[];
}

interface OwnSite {
  readonly ring_hash: string;
  readonly line: string;
  readonly generation: number;
  readonly size: number;
  readonly ring: { readonly keys: readonly { readonly node: string; readonly key: string }[] };
  readonly lines: readonly { readonly ring_changes: number }[];
}

export async function startSite(nodes: number, controllerId: string): Promise<TenureCluster> {
  return await startTenureCluster({
    nodes,
    election: CALM_ELECTION,
    prepare: (node) => node.configure({ mesh: { mode: "distributed", controller_id: controllerId } }),
  });
}

/** What the node shows of its site; null: it has no ring yet. */
export async function ownOf(node: TenureNode): Promise<OwnSite | null> {
  const { body } = await node.call<{ own?: OwnSite | null }>("/v1/mesh/sites", { key: OPERATOR_KEY });
  return body.own ?? null;
}

export async function ringOf(node: TenureNode, keys: number, generation = 1): Promise<string> {
  await waitFor(`a ring of ${keys} keys in generation ${generation}`, async () => {
    const own = await ownOf(node).catch(() => null);
    return own !== null && own.generation === generation && own.ring.keys.length === keys;
  });
  return (await ownOf(node))!.ring_hash;
}

/** Jobs of which nobody hears again, and a key, whose events never leave the site. */
export async function happen(node: TenureNode, jobs: number): Promise<void> {
  for (let n = 0; n < jobs; n++) {
    const { status } = await node.call("/v1/jobs", {
      method: "POST",
      key: OPERATOR_KEY,
      body: { kind: "compile", payload: { of: `the ${n}th – ünïcode` } },
    });
    if (status >= 300) throw new Error(`a job was answered with ${status}`);
  }
  const name = `k-${Math.floor(performance.now() * 1_000)}`;
  const said = await tenure(
    "key",
    "create",
    "--role",
    "viewer",
    "--name",
    name,
    "--url",
    node.url,
    "--key",
    OPERATOR_KEY,
  );
  if (said.code !== 0) throw new Error(said.stderr);
}

export async function auditOf(url: string, ...flags: string[]): Promise<Audited & { readonly code: number | null }> {
  const said = await tenure("mesh", "audit", url, "--json", "--key", OPERATOR_KEY, ...flags);
  if (said.stdout === "") throw new Error(`${said.code}: ${said.stderr}`);
  return { ...(JSON.parse(said.stdout) as Audited), code: said.code };
}

interface ShownPage {
  readonly line: string;
  readonly after: number;
  items: (string | { hash: string })[];
  checkpoint: string;
}

/** Of a page: the site says that there is none. */
export const HIDDEN = Symbol("hidden");

/** Says what the site says, but for pages, which `change` may change, or hide. */
export async function liar(site: string, change: (page: ShownPage) => unknown): Promise<{ url: string; end(): void }> {
  const server = createServer((request, answer) => {
    void (async () => {
      const key = request.headers["x-api-key"] as string;
      const real = await fetch(`${site}${request.url}`, { headers: { "x-api-key": key } });
      let text = await real.text();
      if (request.url?.startsWith("/v1/mesh/pages") === true) {
        const { page } = JSON.parse(text) as { page: ShownPage | null };
        const isHidden = page !== null && change(page) === HIDDEN;
        text = JSON.stringify({ page: isHidden ? null : page });
      }
      answer.writeHead(real.status, { "content-type": "application/json" }).end(text);
    })();
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, end: () => void server.close() };
}
