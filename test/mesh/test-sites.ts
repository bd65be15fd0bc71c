// Sites of a mesh as real servers: clusters of one or three nodes each, linked as the configuration says, with keys of the role `controller`
// from each child to each parent. What a test compares is what the sites themselves show: heads and pages of each line.

import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { canonicalJson } from "../../src/core/events/canonical.ts";
import { isWithheld } from "../../src/core/mesh/proof/index.ts";
import {
  OPERATOR_KEY,
  startTenureCluster,
  type TenureCluster,
  type TenureClusterOptions,
  type TenureNode,
  waitFor,
} from "../servers/index.ts";

/** Sites load their sources while six other helpers use the same two processors. */
export const SITES_START_MS = 240_000;
export const SPREAD_MS = 120_000;

export interface SiteOptions {
  readonly id: string;
  /** URLs of parents, as this site reaches them. */
  readonly parents?: readonly string[] | undefined;
  /** Sites that may dial this one. */
  readonly children?: readonly string[] | undefined;
  readonly nodes?: number | undefined;
  readonly mesh?: Readonly<Record<string, unknown>> | undefined;
  readonly election?: TenureClusterOptions["election"];
  /** After all else of a node's configuration is written, before its first start. */
  readonly prepare?: ((node: TenureNode) => void) | undefined;
}

export type Heads = ReadonlyMap<string, { readonly size: number; readonly root: string }>;
const NO_HEADS: Heads = new Map();

/** As GET /api/events/since shows it. */
interface Arrived {
  readonly line: string | null;
  readonly lineSequence: number;
  readonly eventHash: string;
  readonly eventType: string;
  readonly withheld?: boolean;
  readonly [field: string]: unknown;
}

export class TestSite {
  readonly id: string;
  readonly cluster: TenureCluster;

  readonly #node: string | undefined;

  private constructor(id: string, cluster: TenureCluster, node?: string) {
    this.id = id;
    this.cluster = cluster;
    this.#node = node;
  }

  /** The same site, as this node shows it. */
  at(node: TenureNode): TestSite {
    return new TestSite(this.id, this.cluster, node.id);
  }

  static async start(options: SiteOptions): Promise<TestSite> {
    const { id, parents = [], children = [], nodes = 1, mesh = {}, election } = options;
    const cluster = await startTenureCluster({
      nodes,
      election,
      prepare: (node) => {
        const keyFile = join(node.home, "parent.key");
        writeFileSync(keyFile, keyOf(id), { mode: 0o600 });
        node.configure({
          keys: [...(node.config.keys ?? []), ...children.map(controllerKey)],
          mesh: {
            mode: "distributed",
            controller_id: id,
            ...(parents.length === 0 ? {} : { parent_urls: [...parents], api_key_file: keyFile }),
            ...mesh,
          },
        });
        options.prepare?.(node);
      },
    });
    return new TestSite(id, cluster);
  }

  get node(): TenureNode {
    return this.#node === undefined ? this.cluster.nodes[0]! : this.cluster.node(this.#node);
  }

  get url(): string {
    return this.node.url;
  }

  async leader(): Promise<TenureNode> {
    return this.cluster.node(await this.cluster.leader());
  }

  async submit(count: number): Promise<void> {
    const node = await this.leader();
    const jobs = Array.from({ length: count }, (_, at) => ({ kind: "echo", payload: { from: this.id, at } }));
    const { status, body } = await node.call("/v1/jobs", { body: { jobs }, key: OPERATOR_KEY });
    if (status >= 300) throw new Error(`${this.id} did not take jobs: ${status} ${JSON.stringify(body)}`);
  }

  async get<T>(path: string, node: TenureNode = this.node): Promise<T> {
    const { status, body } = await node.call<T>(path, { key: OPERATOR_KEY });
    if (status !== 200) throw new Error(`${this.id} ${path}: ${status} ${JSON.stringify(body)}`);
    return body;
  }

  /** The size of each line that this site has, by the line's name; and its root. */
  async heads(node: TenureNode = this.node): Promise<Heads> {
    const { heads } = await this.get<{ heads: readonly string[] }>("/v1/mesh/heads", node);
    return new Map(
      heads.map((note) => {
        const [line = "", size = "", root = ""] = note.split("\n");
        return [line, { size: Number(size), root }];
      }),
    );
  }

  /** Every item of a line, as this site serves it. */
  async items(line: string): Promise<readonly string[]> {
    const items: string[] = [];
    for (;;) {
      const path = `/v1/mesh/pages?line=${line}&after=${items.length}`;
      const { page } = await this.get<{ page: { after: number; items: readonly unknown[] } | null }>(path);
      if (page === null) return items;
      // A relay's page may begin before what was asked for.
      const fresh = page.items.slice(items.length - page.after);
      items.push(...fresh.map((item) => (typeof item === "string" ? item : JSON.stringify(item))));
    }
  }

  /**
   * The same of every line, from what has arrived here, a thousand in a request: a relay serves pages as they came, and those may be tens of
   * thousands. The text of each is made of its fields, and what is not what was hashed shows.
   */
  async itemsByLine(): Promise<ReadonlyMap<string, readonly string[]>> {
    const byLine = new Map<string, string[]>();
    for (let after = 0; ;) {
      const path = `/api/events/since/${after}?limit=1000`;
      const { events, throughSequence } = await this.get<{ events: readonly Arrived[]; throughSequence: number }>(path);
      if (events.length === 0) return byLine;
      for (const { line, lineSequence, eventHash, withheld, ...fields } of events) {
        const items = byLine.get(line ?? "") ?? [];
        byLine.set(line ?? "", items);
        const isStub = withheld === true || isWithheld(fields.eventType);
        items[lineSequence - 1] = isStub
          ? JSON.stringify({ hash: eventHash })
          : canonicalJson({ ...fields, sequence: lineSequence });
      }
      after = throughSequence;
    }
  }

  /** Every link of this site is connected. */
  async isLinked(): Promise<boolean> {
    const { links } = await this.get<{ links: readonly { connected: boolean }[] }>("/v1/mesh/sites");
    return links.length > 0 && links.every(({ connected }) => connected);
  }

  async ownLine(): Promise<string> {
    const { own } = await this.get<{ own: { line: string } | null }>("/v1/mesh/sites");
    return own?.line ?? "";
  }

  end(): Promise<void> {
    return this.cluster.end();
  }
}

export function keyOf(child: string): string {
  return `key-of-the-site-${child}`;
}

/** Named after the site: it may act for that one and no other. */
function controllerKey(child: string) {
  const sha256 = createHash("sha256").update(keyOf(child)).digest("hex");
  return { name: child, role: "controller" as const, sha256 };
}

/** Every one of these sites has the same of every line of these, and all of them. */
export async function haveTheSame(sites: readonly TestSite[], limitMs = SPREAD_MS): Promise<void> {
  const ids = new Set(sites.map(({ id }) => id));
  let shown = "";
  const isSame = async (): Promise<boolean> => {
    const heads = await Promise.all(sites.map((site) => site.heads().catch(() => NO_HEADS)));
    shown = sites.map(({ id }, at) => `${id}: ${JSON.stringify([...heads[at]!])}`).join("\n");
    const ofThese = heads.map((lines) => new Map([...lines].filter(([line]) => ids.has(line.split(".")[0]!))));
    return ofThese.every((lines) => lines.size === ids.size && isEqual(lines, ofThese[0]!));
  };
  await waitFor("all sites to have the same", isSame, limitMs).catch(async (error: unknown) => {
    const links = await Promise.all(
      sites.map((site) => site.get("/v1/mesh/sites").catch((why: unknown) => String(why))),
    );
    const logs = sites.map(({ id, node }) => `${id}:\n${node.log().slice(-3_000)}`);
    throw new Error(`${(error as Error).message}\n${shown}\n${JSON.stringify(links, null, 1)}\n${logs.join("\n")}`);
  });
}

function isEqual(one: Heads, other: Heads): boolean {
  if (one.size !== other.size) return false;
  return [...one].every(([line, { size, root }]) => other.get(line)?.size === size && other.get(line)?.root === root);
}
