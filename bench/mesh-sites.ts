// Sites of the benchmark of the mesh: one node each, in a tree in which every site has at most four children. The first is the author of
// everything that is measured.

import { setTimeout as sleep } from "node:timers/promises";
import { TestSite } from "../test/mesh/test-sites.ts";
import { CALM_ELECTION, OPERATOR_KEY, waitFor } from "../test/servers/index.ts";
import { PROBE } from "./mesh-probe.ts";
import { say } from "./stage.ts";

const CHILDREN_MAX = 4;
const START_MS_MAX = 300_000;
const POLL_MS = 20;
const SHOWN_MS_MAX = 120_000;

export class MeasuredSite {
  readonly site: TestSite;

  constructor(site: TestSite) {
    this.site = site;
  }

  /** How many events of the line are applied here. */
  async sizeOf(line: string): Promise<number> {
    const headers = { "x-api-key": OPERATOR_KEY };
    const answer = await fetch(`${this.site.url}/v1/mesh/checkpoint?line=${line}`, { headers });
    const note = await answer.text();
    return answer.status === 200 ? Number(note.split("\n")[1]) : 0;
  }

  /** `seen`: called with what it has, each time that it is asked. */
  async has(line: string, size: number, seen: (has: number) => void = () => undefined): Promise<void> {
    for (let has = 0; has < size;) {
      has = await this.sizeOf(line);
      seen(has);
      if (has < size) await sleep(POLL_MS);
    }
  }

  /** What it shows has everything that has arrived: nothing of what was written before is left to do. Its thread comes after everybody else's: on a busy machine that may not end. */
  async isShown(): Promise<void> {
    const untilMs = performance.now() + SHOWN_MS_MAX;
    while ((await this.#lag()) > 0) {
      if (performance.now() > untilMs) return say(`what ${this.site.id} shows is not up to date: go on without`);
      await sleep(POLL_MS * 5);
    }
  }

  async #lag(): Promise<number> {
    const { arrival, through } = await this.site.get<{ arrival: number; through: number }>("/v1/mesh/state");
    return arrival - through;
  }
}

export class MeshTree {
  readonly sites: TestSite[] = [];
  readonly measured: MeasuredSite[] = [];
  readonly #childrenMax: number;

  private constructor(childrenMax: number) {
    this.#childrenMax = childrenMax;
  }

  static async start(count: number, guests: readonly string[] = [], childrenMax = CHILDREN_MAX): Promise<MeshTree> {
    const tree = new MeshTree(childrenMax);
    const ids = Array.from({ length: count }, (_, at) => `s${at}`);
    try {
      for (const id of ids) await tree.add(id, [...ids, ...guests, PROBE]);
      await tree.linked();
      return tree;
    } catch (error) {
      await tree.end();
      throw error;
    }
  }

  get author(): TestSite {
    return this.sites[0]!;
  }

  async add(id: string, ids: readonly string[], parent = this.#parent()): Promise<MeasuredSite> {
    const parents = parent === null ? [] : [parent];
    const children = ids.filter((child) => child !== id);
    const site = await TestSite.start({ id, parents, children, election: CALM_ELECTION });
    this.sites.push(site);
    const measured = new MeasuredSite(site);
    this.measured.push(measured);
    return measured;
  }

  /** Every site has what the author has. */
  async linked(): Promise<void> {
    await waitFor("the author's line", async () => (await this.author.ownLine()) !== "", START_MS_MAX);
    const line = await this.author.ownLine();
    const size = await this.measured[0]!.sizeOf(line);
    const isLinked = async (): Promise<boolean> => {
      const sizes = await Promise.all(this.measured.map((one) => one.sizeOf(line)));
      return sizes.every((has) => has >= size);
    };
    await waitFor("all sites to be linked", isLinked, START_MS_MAX);
  }

  async end(): Promise<void> {
    await Promise.all(this.sites.map((site) => site.end()));
  }

  #parent(): string | null {
    const at = this.sites.length;
    return at === 0 ? null : this.sites[Math.floor((at - 1) / this.#childrenMax)]!.url;
  }
}
