// A planted fork of `chaos mesh`: a site whose disk is copied while it is stopped, as a snapshot of its machine would be. The copy is started
// elsewhere, with the same key; then the site goes on. Neither knows of the other, and each signs its own history.
//
//   started ──▶ known everywhere ──stop, copy──▶ the copy writes ──continue──▶ both write

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

export class Twin {
  readonly site: TestSite;
  readonly #stage: MeshStage;
  #line = "";
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
    const before = (await this.site.heads()).get(this.#line)?.size ?? 0;
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
    await waitFor(`a copy of ${id} to be heard of`, async () => (await this.#sizeAtStage()) > before, STEP_MS_MAX);
    node.cont();
    await submitted(node, `${id}:itself`, 1);
    await waitFor(`${id} to sign both`, () => this.#isSigned(node, copy, before), STEP_MS_MAX);
    this.#isForked = true;
  }

  async end(): Promise<void> {
    await this.#copy?.kill9();
    await this.site.end();
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

  /** Both show a signed head past the copy, and the events there differ. */
  async #isSigned(node: TenureNode, copy: TenureNode, before: number): Promise<boolean> {
    const texts = await Promise.all([node, copy].map((one) => this.#itemsOf(one, before)));
    return texts.every((text) => text !== null) && texts[0] !== texts[1];
  }

  async #itemsOf(node: TenureNode, after: number): Promise<string | null> {
    const path = `/v1/mesh/pages?line=${this.#line}&after=${after}`;
    const { body } = await direct<{ page?: { items: readonly unknown[] } | null }>(node, path);
    return body.page === null || body.page === undefined ? null : JSON.stringify(body.page.items[0]);
  }
}

async function submitted(node: TenureNode, name: string, count: number): Promise<void> {
  const tags = Array.from({ length: count }, (_, at) => `${name}:${at}`);
  await waitFor(`${name} to take jobs`, async () => (await submitTo(node, tags)) === true, STEP_MS_MAX);
}
