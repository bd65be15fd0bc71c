// The sites of `chaos mesh`: five real ones, of which `a` has three nodes, and the wires between them. A wire is the proxies through which
// one site, or all that dial `a`, reach another; the harness itself reaches every node directly.
//
//        a (3 nodes)            b and c dial a
//       ╱ ╲
//      b   c                    d and e dial both b and c: there are two ways between any two sites but a
//      │╲ ╱│
//      d   e

import { join } from "node:path";
import type { Edit } from "../../src/sim/mutants/patch.ts";
import { TestSite } from "../mesh/test-sites.ts";
import { OPERATOR_KEY, startProxy, type TcpProxy, type TenureNode, waitFor } from "../servers/index.ts";
import { writePlant } from "../servers/planted.ts";
import { STEADY_ELECTION } from "./jobs-stage.ts";

const HOST = "127.0.0.1";
/** An address of documentation (RFC 5737): as that of a site in a private network. */
const UNREACHABLE = "http://192.0.2.1:7401";
const CALL_MS_MAX = 5_000;
/** A process that loads its sources while others want both processors. */
const BACK_MS_MAX = 120_000;
const LOG_CHARS = 1_500;
const HUB = "a";
const HUB_NODES = 3;
const SITE_IDS = [HUB, "b", "c", "d", "e"] as const;
/** Whom each site dials. */
const PARENTS: Readonly<Record<string, readonly string[]>> = { b: [HUB], c: [HUB], d: ["b", "c"], e: ["c", "b"] };

export interface Wire {
  readonly name: string;
  readonly proxies: readonly TcpProxy[];
}

export interface MeshStageOptions {
  /** Further ones that may dial any of the five. */
  readonly guests: readonly string[];
  /** Planted into every node. */
  readonly edits?: readonly Edit[] | undefined;
}

export interface DirectCall {
  readonly body?: object | undefined;
  readonly key?: string | undefined;
  readonly limitMs?: number | undefined;
}

export interface DirectAnswer<T> {
  readonly status: number;
  readonly body: T;
}

export class MeshStage {
  readonly sites: readonly TestSite[];
  readonly wires: readonly Wire[];
  /** Processes that ended by themselves. */
  readonly crashes: string[] = [];

  private constructor(sites: readonly TestSite[], wires: readonly Wire[]) {
    this.sites = sites;
    this.wires = wires;
  }

  static async start({ guests, edits = [] }: MeshStageOptions): Promise<MeshStage> {
    const hub = { name: HUB, proxies: await proxies(HUB_NODES) };
    const links = Object.entries(PARENTS).flatMap(([child, parents]) => parents.map((parent) => ({ child, parent })));
    const others = await Promise.all(
      links
        .filter(({ parent }) => parent !== HUB)
        .map(async ({ child, parent }) => ({ name: `${child}-${parent}`, proxies: await proxies(1) })),
    );
    const wires = [hub, ...others];
    const wireOf = (child: string, parent: string): Wire =>
      parent === HUB ? hub : others.find(({ name }) => name === `${child}-${parent}`)!;
    const starting = SITE_IDS.map((id) =>
      TestSite.start({
        id,
        nodes: id === HUB ? HUB_NODES : 1,
        election: STEADY_ELECTION,
        parents: (PARENTS[id] ?? []).flatMap((parent) => wireOf(id, parent).proxies.map(urlOf)),
        children: [...SITE_IDS.filter((child) => child !== id), ...guests],
        prepare: (node) => {
          for (const { child, parent } of links.filter((link) => link.parent === id)) {
            const through = wireOf(child, parent).proxies;
            const proxy = through[through.length === 1 ? 0 : Number(node.id.slice(1)) - 1]!;
            proxy.swap({ host: HOST, port: Number(listenOf(node).split(":").at(-1)) });
            // Whoever looks for the leader of three follows what they announce. The others announce what nobody can dial, or a child
            // would go on past its proxy after a restart, and nothing could be cut any more.
            node.configure({ api: { ...node.config.api, advertise: id === HUB ? urlOf(proxy) : UNREACHABLE } });
          }
          node.reachedAt = directUrl(node);
          node.nodeFlags = writePlant(join(node.home, "plant.mjs"), edits);
        },
      }),
    );
    const settled = await Promise.allSettled(starting);
    const sites = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    const stage = new MeshStage(sites, wires);
    const failed = settled.find((one) => one.status === "rejected");
    if (failed === undefined) return stage;
    await stage.end();
    throw failed.reason;
  }

  site(id: string): TestSite {
    return this.sites.find((site) => site.id === id)!;
  }

  get hub(): TestSite {
    return this.site(HUB);
  }

  /** Those of one node. */
  get singles(): readonly TestSite[] {
    return this.sites.filter(({ id }) => id !== HUB);
  }

  get nodes(): readonly TenureNode[] {
    return this.sites.flatMap(({ cluster }) => cluster.nodes);
  }

  /** Null where nobody says that it leads. */
  async leaderOf(site: TestSite): Promise<TenureNode | null> {
    for (const node of site.cluster.nodes) if (await isLeading(node)) return node;
    return null;
  }

  async waitForLeader(site: TestSite): Promise<TenureNode> {
    let leader: TenureNode | null = null;
    await waitFor(
      `the site ${site.id} to have a leader`,
      async () => (leader = await this.leaderOf(site)) !== null,
      BACK_MS_MAX,
    ).catch((error: unknown) => {
      const logs = site.cluster.nodes.map((node) => `${node.id}: ${node.log().slice(-LOG_CHARS)}`);
      throw new Error(`${(error as Error).message}\n${logs.join("\n")}`);
    });
    return leader!;
  }

  start(node: TenureNode, site: string): void {
    const { exitCode } = node;
    if (node.pid === undefined && exitCode !== null && exitCode !== 0) {
      this.crashes.push(`${site}/${node.id} ended by itself (${exitCode}): ${node.log().trim().slice(-LOG_CHARS)}`);
    }
    node.start();
  }

  /** Nothing is cut, nobody is stopped, every node answers and its site is led. */
  async heal(): Promise<void> {
    for (const { proxies: cut } of this.wires) for (const proxy of cut) await proxy.heal();
    for (const { id, cluster } of this.sites) {
      for (const node of cluster.nodes) {
        node.cont();
        this.start(node, id);
      }
    }
    for (const site of this.sites) {
      await this.waitForLeader(site);
      for (const node of site.cluster.nodes) {
        await waitFor(`${site.id}/${node.id} to answer`, async () => (await roleOf(node)) !== null, BACK_MS_MAX);
      }
    }
  }

  /** How each node sees its links, and whether it signs: for a run that has failed. */
  async links(): Promise<string> {
    const shown = await Promise.all(
      this.sites.flatMap(({ id, cluster }) =>
        cluster.nodes.map(async (node) => {
          const answer = await direct(node, "/v1/mesh/sites").catch((error: unknown) => ({
            body: { why: String(error) },
          }));
          const { status, why, links } = answer.body as Readonly<Record<string, unknown>>;
          return `${id}/${node.id}: ${JSON.stringify({ status, why, links })}`;
        }),
      ),
    );
    return shown.join("\n");
  }

  async end(): Promise<void> {
    await Promise.all(this.sites.map((site) => site.end()));
    await Promise.all(this.wires.flatMap((wire) => wire.proxies.map((proxy) => proxy.end())));
  }
}

async function proxies(count: number): Promise<readonly TcpProxy[]> {
  const made: TcpProxy[] = [];
  for (let at = 0; at < count; at++) made.push(await startProxy({ host: HOST, port: 1 }));
  return made;
}

function urlOf(proxy: TcpProxy): string {
  return `http://${HOST}:${proxy.port}`;
}

function listenOf(node: TenureNode): string {
  return node.config.api?.listen ?? "";
}

/** Past every proxy. */
export function directUrl(node: TenureNode): string {
  return `http://${listenOf(node)}`;
}

/** Past every proxy; rejects where there is no answer. */
export async function direct<T = Readonly<Record<string, unknown>>>(
  node: TenureNode,
  path: string,
  { body, key = OPERATOR_KEY, limitMs = CALL_MS_MAX }: DirectCall = {},
): Promise<DirectAnswer<T>> {
  const answer = await fetch(`${directUrl(node)}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { "x-api-key": key, ...(body === undefined ? {} : { "content-type": "application/json" }) },
    body: body === undefined ? null : JSON.stringify(body),
    signal: AbortSignal.timeout(limitMs),
  });
  return { status: answer.status, body: (await answer.json()) as T };
}

async function isLeading(node: TenureNode): Promise<boolean> {
  return (await roleOf(node)) === "LEADER";
}

/** Null: it does not answer. */
async function roleOf(node: TenureNode): Promise<string | null> {
  if (node.pid === undefined) return null;
  try {
    const { status, body } = await direct<{ role: string }>(node, "/role", { limitMs: 1_500 });
    return status === 200 ? body.role : null;
  } catch {
    return null;
  }
}
