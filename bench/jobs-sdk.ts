// Tenure as its users have it: `tenure/client` submits, `tenure/agent` works.

import { createAgent, type Agent } from "../src/entry/agent.ts";
import { type Client, createClient } from "../src/entry/client.ts";
import { KIND, type Payload, type Side, type Told, type Worker, type WorkOptions } from "./jobs-side.ts";

type Kinds = { readonly [KIND]: { readonly payload: { readonly sentMs: number }; readonly result: null } };

const DRAIN_MS = 5_000;

export class SdkSide implements Side {
  readonly #urls: readonly string[];
  readonly #client: Client;

  constructor(urls: readonly string[], key: string) {
    this.#urls = urls;
    this.#client = createClient({ urls, key });
  }

  async submit(_lane: number, sentMs: number, count: number): Promise<void> {
    const job = { kind: KIND, payload: { sentMs } satisfies Payload };
    if (count === 1) await this.#client.submit(job);
    else await this.#client.submitMany(Array.from({ length: count }, () => job));
  }

  /** An agent for each lane. What it reports is committed when it says so: the agent drops an attempt only then. */
  async work({ batch, lanes }: WorkOptions, told: Told): Promise<Worker> {
    const agents = Array.from({ length: lanes }, (_, lane) => this.#agent(`sdk-${lane}`, batch, told));
    for (const agent of agents) await agent.start();
    return {
      stop: async () => {
        await Promise.all(agents.map((agent) => agent.stop({ drainMs: DRAIN_MS })));
      },
    };
  }

  #agent(name: string, capacity: number, told: Told): Agent {
    const work = this.#client.work;
    // The agent has no event for "committed"; this is where it hears of it. Where the answer to a result got lost, it is told when
    // it renews the lease.
    const done = new Set<string>();
    const tell = (leaseIds: readonly string[]): void => {
      const before = done.size;
      for (const leaseId of leaseIds) done.add(leaseId);
      told.committed(done.size - before);
    };
    const counted: typeof work = {
      lease: async (request, options) => {
        const answer = await work.lease(request, options);
        tell(answer.renewed.filter(({ outcome }) => outcome === "committed").map(({ leaseId }) => leaseId));
        return answer;
      },
      results: async (session, results, options) => {
        const answers = await work.results(session, results, options);
        tell(results.filter((_, at) => answers[at]?.ok === true).map(({ leaseId }) => leaseId));
        return answers;
      },
    };
    return createAgent<Kinds>({
      client: { work: counted },
      name: `${name}-${this.#urls.length}-${process.pid}`,
      capacity,
      handlers: {
        [KIND]: async ({ payload }) => {
          told.handled(payload.sentMs);
          return null;
        },
      },
    });
  }

  async close(): Promise<void> {
    // Nothing is held: its connections end with the process.
  }
}
