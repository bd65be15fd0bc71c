// A planted fork of `chaos mesh`: a site whose disk is copied while it is stopped, as a snapshot of its machine would be. The copy is started
// elsewhere, with the same key. It must not sign by itself, as the site's parent is not there to be compared with; an operator who does
// not know of the other one says `tenure mesh resume`. Then the site goes on, and each signs its own history.
//
//   started ──▶ known everywhere ──stop, copy──▶ the copy writes, and is held ──resume──▶ it signs ──continue──▶ both sign

import { cpSync } from "node:fs";
import { join } from "node:path";
import { TestSite } from "../mesh/test-sites.ts";
import { freePort, type TenureNode, waitFor } from "../servers/index.ts";
import { TenureNode as Node } from "../servers/tenure-node.ts";
import { direct, directUrl, type MeshStage } from "./mesh-stage.ts";
import { submitTo } from "./mesh-traffic.ts";
import { isStopped } from "./stopped.ts";

const HOST = "127.0.0.1";
const STEP_MS_MAX = 120_000;
const JOBS_BEFORE = 5;

export function twinId(at: number): string {
  return `twin-${at}`;
}

interface Shown {
  readonly gate: { readonly missing: readonly string[] };
  readonly links: readonly { readonly connected: boolean }[];
}

export class Twin {
  readonly site: TestSite;
  readonly #stage: MeshStage;
  #line = "";
  /** So many events, or a few more, are the same in both histories. */
  #before = 0;
  #copy: TenureNode | null = null;
  #isForked = false;

  private constructor(site: TestSite, stage: MeshStage) {
    this.site = site;
    this.#stage = stage;
  }

  static async start(id: string, stage: MeshStage): Promise<Twin> {
    const site = await TestSite.start({ id, parents: [directUrl(stage.site("b").node)] });
    return new Twin(site, stage);
  }

  get line(): string {
    return this.#line;
  }

  /** Whether both histories were written and signed. */
  get isForked(): boolean {
    return this.#isForked;
  }

  /** All sites have its line before it is copied. */
  async settle(): Promise<void> {
    const { node } = this.site;
    await submitted(node, this.site.id, JOBS_BEFORE);
    await waitFor(`${this.site.id} to have a line`, async () => (await this.site.ownLine()) !== "", STEP_MS_MAX);
    this.#line = await this.site.ownLine();
    await waitFor(`the line of ${this.site.id} to be known`, async () => (await this.#sizeAtStage()) > 0, STEP_MS_MAX);
  }

  async fork(): Promise<void> {
    const { node, id } = this.site;
    this.#before = (await this.site.heads()).get(this.#line)?.size ?? 0;
    node.stop();
    await waitFor(`${id} to be stopped`, () => isStopped(node.pid));
    const copy = await this.#copied(node);
    this.#copy = copy;
    copy.start();
    await waitFor(
      `the copy of ${id} to lead`,
      async () => (await submitTo(copy, [`${id}:copy`])) === true,
      STEP_MS_MAX,
    ).catch((error: unknown) => {
      throw new Error(`${(error as Error).message}\n${copy.log().slice(-2_000)}`);
    });
    await this.#resume(copy);
    const isHeardOf = async (): Promise<boolean> => (await this.#sizeAtStage()) > this.#before;
    await waitFor(`a copy of ${id} to be heard of`, isHeardOf, STEP_MS_MAX);
    node.cont();
    await submitted(node, `${id}:itself`, 1);
    await waitFor(`${id} to sign both`, () => this.#isSigned(node, copy), STEP_MS_MAX);
    this.#isForked = true;
  }

  async end(): Promise<void> {
    await this.#copy?.kill9();
    await this.site.end();
  }

  /** Once `c` was compared, so that it is seen that this alone does not open the gate. */
  async #resume(copy: TenureNode): Promise<void> {
    const { id } = this.site;
    const isWaiting = async (): Promise<boolean> => {
      const { gate, links } = (await direct<Shown>(copy, "/v1/mesh/sites")).body;
      return links.some(({ connected }) => connected) && String(gate.missing) === "b";
    };
    await waitFor(`the copy of ${id} to wait for b alone`, isWaiting, STEP_MS_MAX);
    const { status, body } = await direct(copy, "/v1/mesh/resume", { body: {} });
    if (status !== 200) throw new Error(`the copy of ${id} was not resumed: ${JSON.stringify(body)}`);
  }

  /** What `c`, which the copy dials, has of the line. */
  async #sizeAtStage(): Promise<number> {
    return (
      (
        await this.#stage
          .site("c")
          .heads()
          .catch(() => null)
      )?.get(this.#line)?.size ?? 0
    );
  }

  async #copied(node: TenureNode): Promise<TenureNode> {
    const home = join(this.site.cluster.directory, "copy");
    cpSync(node.home, home, { recursive: true });
    const [peer, api] = [`${HOST}:${await freePort()}`, `${HOST}:${await freePort()}`];
    const { mesh, ...config } = node.config;
    return new Node(home, {
      ...config,
      data_dir: join(home, "data"),
      peer: { listen: peer },
      peers: { [node.id]: peer },
      api: { listen: api, advertise: `http://${api}` },
      mesh: { ...mesh, parent_urls: [directUrl(this.#stage.site("c").node)] },
    });
  }

  /** Both serve signed events past the copy, and somewhere theirs differ. */
  async #isSigned(node: TenureNode, copy: TenureNode): Promise<boolean> {
    const [its, copys] = await Promise.all([node, copy].map((one) => this.#itemsOf(one)));
    return its!.some((item, at) => at < copys!.length && item !== copys![at]);
  }

  async #itemsOf(node: TenureNode): Promise<readonly string[]> {
    const path = `/v1/mesh/pages?line=${this.#line}&after=${this.#before}`;
    const { body } = await direct<{ page?: { items: readonly unknown[] } | null }>(node, path);
    return (body.page?.items ?? []).map((item) => JSON.stringify(item));
  }
}

async function submitted(node: TenureNode, name: string, count: number): Promise<void> {
  const tags = Array.from({ length: count }, (_, at) => `${name}:${at}`);
  await waitFor(`${name} to take jobs`, async () => (await submitTo(node, tags)) === true, STEP_MS_MAX);
}
