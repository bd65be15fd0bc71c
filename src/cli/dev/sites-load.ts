// A little work at one site: a job now and then, and an agent of this process that runs it. Whatever fails is what the demonstration is about: a
// site that is being started, or was killed.

import { setTimeout as sleep } from "node:timers/promises";
import { createAgent } from "../../entry/agent.ts";
import { type Client, createClient } from "../../client/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import * as limits from "./limits.ts";
import { pause } from "./terminal.ts";

const KIND = "sample";
const QUEUES = ["mail", "maps", "stars"] as const;

export class SiteLoad {
  readonly #site: string;
  readonly #client: Client;
  readonly #agent: ReturnType<typeof createAgent>;
  #submitted = 0;

  constructor(site: string, url: string, key: string) {
    this.#site = site;
    this.#client = createClient({ urls: [url], key, timeoutMs: limits.LOAD_CALL_MS });
    this.#agent = createAgent({
      urls: [url],
      key,
      name: `worker-of-${site}`,
      handlers: { [KIND]: async () => await sleep(limits.SITE_JOB_MS) },
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    // It goes on trying, for as long as it takes.
    void this.#agent.start().catch(() => undefined);
    while (!signal.aborted) {
      try {
        const queue = QUEUES[this.#submitted % QUEUES.length]!;
        await this.#client.submit({ kind: KIND, queue, payload: { from: this.#site } }, { signal });
        this.#submitted++;
      } catch (error) {
        if (!signal.aborted && !TenureError.is(error)) throw error;
      }
      await pause(limits.SITE_LOAD_EVERY_MS, signal);
    }
  }

  async close(): Promise<void> {
    await this.#agent[Symbol.asyncDispose]();
  }
}
