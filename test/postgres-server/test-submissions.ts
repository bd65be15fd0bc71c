// Jobs that are submitted one after the other while the database fails, and what each of them heard; compared at the end with
// what the log has. Acknowledged means written once, refused means never written, and only what was said to be unknown may be
// either.

import { randomUUID } from "node:crypto";
import { key, type Site, waitFor } from "./test-site.ts";

type Heard = "acknowledged" | "refused" | "unknown";

export class Submissions {
  readonly #site: Site;
  readonly #heard = new Map<string, { readonly heard: Heard; readonly why: string }>();
  readonly #running: Promise<void>[] = [];
  #stopped = false;

  constructor(site: Site) {
    this.#site = site;
  }

  /** Submits one job to whoever leads, if somebody does, and remembers the answer. */
  async submit(limitMs = 20_000): Promise<{ kind: string; heard: Heard; why: string }> {
    const kind = randomUUID();
    const told = await this.#answer(kind, limitMs);
    this.#heard.set(kind, told);
    return { kind, ...told };
  }

  begin(count: number): void {
    const loop = async (): Promise<void> => {
      while (!this.#stopped) await this.submit();
    };
    for (let at = 0; at < count; at++) this.#running.push(loop());
  }

  async rest(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#running.splice(0));
  }

  count(which: Heard): number {
    return [...this.#heard.values()].filter(({ heard }) => heard === which).length;
  }

  reasons(which: Heard): string[] {
    return [...this.#heard.values()].filter(({ heard }) => heard === which).map(({ why }) => why);
  }

  async progress(more: number): Promise<void> {
    const goal = this.count("acknowledged") + more;
    await waitFor(`${more} more acknowledged jobs`, () => this.count("acknowledged") >= goal);
  }

  /** What is not as it was said, in words; and on every node the chain of events is whole. */
  async mistakes(): Promise<string[]> {
    const text = "select convert_from(data, 'utf8') as data from tenure_log";
    const records = (await this.#site.server.query<{ data: string }>(text)).map(({ data }) => data);
    const mistakes: string[] = [];
    for (const [kind, { heard, why }] of this.#heard) {
      const times = records.filter((data) => data.includes(kind)).length;
      const isRight = heard === "unknown" ? times <= 1 : times === (heard === "acknowledged" ? 1 : 0);
      if (!isRight) mistakes.push(`${kind} was ${heard} (${why}) and is in the log ${times} times`);
    }
    for (const node of this.#site.cluster.nodes) {
      const { body } = await node.call<{ valid?: boolean }>("/api/events/verify", { key, limitMs: 60_000 });
      if (body.valid !== true) mistakes.push(`${node.id} can't verify its events: ${JSON.stringify(body)}`);
    }
    return mistakes;
  }

  async #answer(kind: string, limitMs: number): Promise<{ heard: Heard; why: string }> {
    try {
      const leader = this.#site.cluster.node(await this.#site.cluster.waitForLeader());
      const { status, body } = await leader.call<{ error?: string; message?: string }>("/v1/jobs", {
        key,
        body: { kind },
        limitMs,
      });
      if (status === 200) return { heard: "acknowledged", why: "" };
      const why = `${status} ${body.error}: ${body.message}`;
      return { heard: body.error === "OUTCOME_UNKNOWN" ? "unknown" : "refused", why };
    } catch (error) {
      return { heard: "unknown", why: String(error) };
    }
  }
}
