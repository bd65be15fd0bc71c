// What a site has of one line, without asking for it: the benchmark dials the site as another site would, asks for the line, and is sent each page
// when it is applied there. To ask 25 sites every few milliseconds instead would cost more than what is measured.

import { request } from "node:http";
import { LineSplitter } from "../src/drivers/http/index.ts";
import { Stranger } from "../test/mesh/test-hostile.ts";
import { keyOf, type TestSite } from "../test/mesh/test-sites.ts";

/** A child that every site of the benchmark knows the key of. */
export const PROBE = "probe";
const LINE_BYTES_MAX = 4 * 1024 * 1024;

interface Message {
  readonly hello?: object;
  readonly page?: { readonly line: string; readonly after: number; readonly items: readonly unknown[] };
}

/** The probe is one site with one key, which every site knows. */
export async function introduceProbe(sites: readonly TestSite[]): Promise<void> {
  let [target] = sites as [TestSite];
  const probe = new Stranger(PROBE, { call: (path, call) => target.node.call(path, call) });
  for (const site of sites) {
    target = site;
    const { status, body } = await probe.register(site.id);
    if (status !== 200) throw new Error(`${site.id} did not register the probe: ${JSON.stringify(body)}`);
  }
}

export class Probe {
  readonly #site: TestSite;
  readonly #line: string;
  readonly #waiting: { readonly size: number; readonly resolve: (atMs: number) => void }[] = [];
  readonly #stopped = new AbortController();
  #size: number;

  private constructor(site: TestSite, line: string, size: number) {
    this.#site = site;
    this.#line = line;
    this.#size = size;
  }

  /** `size`: what the site has by now. Resolves when the site knows what is asked for. */
  static async open(site: TestSite, line: string, size: number): Promise<Probe> {
    const probe = new Probe(site, line, size);
    await probe.#dial();
    const graft = [{ line, after: size }];
    const body = { controller: PROBE, heads: [], graft };
    const { status } = await site.node.call("/api/events/broadcast", { body, key: keyOf(PROBE) });
    if (status !== 200) throw new Error(`${site.id} does not send the line: ${status}`);
    return probe;
  }

  /** When the site had so many events, on this process's monotonic clock. */
  reached(size: number): Promise<number> {
    if (this.#size >= size) return Promise.resolve(performance.now());
    return new Promise((resolve) => void this.#waiting.push({ size, resolve }));
  }

  close(): void {
    this.#stopped.abort();
  }

  #dial(): Promise<void> {
    const splitter = new LineSplitter(LINE_BYTES_MAX);
    const headers = { "content-type": "application/json", "x-api-key": keyOf(PROBE) };
    const options = { method: "POST", agent: false as const, headers, signal: this.#stopped.signal };
    return new Promise((resolve, reject) => {
      const sent = request(`${this.#site.url}/v1/mesh/stream`, options, (response) => {
        if (response.statusCode !== 200) reject(new Error(`${this.#site.id} opens no stream: ${response.statusCode}`));
        response.on("error", () => undefined);
        response.on("data", (chunk: Buffer) => {
          for (const text of splitter.push(chunk)) this.#take(JSON.parse(text) as Message, resolve);
        });
      });
      sent.on("error", reject);
      sent.end(JSON.stringify({ controller: PROBE, heads: [] }));
    });
  }

  #take({ hello, page }: Message, isUp: () => void): void {
    if (hello !== undefined) isUp();
    if (page?.line !== this.#line) return;
    const nowMs = performance.now();
    this.#size = Math.max(this.#size, page.after + page.items.length);
    while (this.#waiting.length > 0 && this.#waiting[0]!.size <= this.#size) this.#waiting.shift()!.resolve(nowMs);
  }
}
