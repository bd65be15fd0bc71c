// What happens at each site of `chaos mesh` meanwhile: jobs are submitted, an agent finishes them. The ledger is the harness's: a job whose
// submission was acknowledged must be in its site's line, at every site, in the end.

import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../src/core/kit/random.ts";
import { type Agent, createAgent } from "../../src/entry/agent.ts";
import type { TestSite } from "../mesh/test-sites.ts";
import { OPERATOR_KEY, type TenureNode } from "../servers/index.ts";
import { direct, directUrl } from "./mesh-stage.ts";

const KIND = "chaos";
const BATCH_MAX = 4;
const PAUSE_MS = 60;
const CAPACITY = 8;
const LEASE_MS = 3_000;
const DRAIN_MS = 5_000;

export class SiteTraffic {
  readonly site: TestSite;
  /** Tags of jobs whose submission was acknowledged. */
  readonly acked = new Set<string>();
  readonly #random: Random;
  readonly #agent: Agent;
  readonly #stop = new AbortController();
  #leader: TenureNode;
  #made = 0;
  #submitting: Promise<void> = Promise.resolve();
  #working: Promise<void> = Promise.resolve();

  constructor(site: TestSite, random: Random) {
    this.site = site;
    this.#random = random;
    this.#leader = site.cluster.nodes[0]!;
    this.#agent = createAgent({
      urls: site.cluster.nodes.map(directUrl),
      key: OPERATOR_KEY,
      name: `agent-${site.id}`,
      capacity: CAPACITY,
      leaseMs: LEASE_MS,
      // Servers are killed all the time.
      onError: () => undefined,
      handlers: { [KIND]: ({ payload }) => Promise.resolve(payload) },
    });
  }

  start(): void {
    this.#submitting = this.#submit();
    this.#working = this.#agent.start().catch(() => undefined);
  }

  /** The agent finishes what it has. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#submitting;
    await this.#agent.stop({ drainMs: DRAIN_MS });
    await this.#working;
  }

  async #submit(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const tags = Array.from({ length: 1 + this.#random.below(BATCH_MAX) }, () => `${this.site.id}:${++this.#made}`);
      const isAcked = await submitTo(this.#leader, tags);
      if (isAcked === true) for (const tag of tags) this.acked.add(tag);
      if (isAcked !== true) {
        const { nodes } = this.site.cluster;
        this.#leader = nodes[(nodes.indexOf(this.#leader) + 1) % nodes.length]!;
      }
      await sleep(PAUSE_MS);
    }
  }
}

/** Null: unknown. */
export async function submitTo(node: TenureNode, tags: readonly string[]): Promise<boolean | null> {
  const jobs = tags.map((tag) => ({ kind: KIND, payload: { tag } }));
  try {
    const { status } = await direct(node, "/v1/jobs", { body: { jobs } });
    return status < 300;
  } catch {
    return null;
  }
}
