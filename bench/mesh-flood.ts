// What a hostile peer costs a site: it is registered, and sends bad pages as fast as they are refused, each with a valid signature over another
// root, so that every item is hashed before it is refused. Measured is how many jobs a second the site takes meanwhile, in turns with and without.

import { Worker } from "node:worker_threads";
import { median } from "../test/chaos/figures.ts";
import { Stranger, withItem } from "../test/mesh/test-hostile.ts";
import { keyOf } from "../test/mesh/test-sites.ts";
import { MeshTree } from "./mesh-sites.ts";
import { rounded, say } from "./stage.ts";

const HOSTILE = "hostile";
const TURNS = 4;
const TURN_MS = 3_000;
const JOBS = 50;
const PAGE_ITEMS = 512;
const CONNECTIONS = 2;

export async function flooded() {
  say("a hostile peer");
  const tree = await MeshTree.start(1, [HOSTILE]);
  try {
    const stranger = new Stranger(HOSTILE, tree.author.node);
    stranger.line.writeMany(PAGE_ITEMS);
    const { status } = await stranger.register(tree.author.id);
    if (status !== 200) throw new Error(`the hostile site was not registered: ${status}`);
    const bad = withItem(stranger.line.page(0, PAGE_ITEMS), 2, (text) => text.replace("job-", "jOb-"));
    const body = JSON.stringify({ controller: HOSTILE, pages: [bad], heads: [] });
    await jobsPerS(tree);
    const [calm, under] = [[] as number[], [] as number[]];
    let pages = 0;
    for (let turn = 0; turn < TURNS; turn++) {
      calm.push(await jobsPerS(tree));
      const flood = new Flood(`${tree.author.url}/api/events/broadcast`, body);
      under.push(await jobsPerS(tree));
      pages += await flood.end();
    }
    const [jobs_per_s, flooded_per_s] = [Math.round(median(calm)), Math.round(median(under))];
    const pages_per_s = Math.round((pages * 1_000) / (TURNS * TURN_MS));
    return {
      pages_per_s,
      jobs_per_s,
      flooded_per_s,
      effect_percent: rounded(100 - (100 * flooded_per_s) / jobs_per_s, 1),
    };
  } finally {
    await tree.end();
  }
}

async function jobsPerS(tree: MeshTree): Promise<number> {
  const fromMs = performance.now();
  let jobs = 0;
  for (; performance.now() - fromMs < TURN_MS; jobs += JOBS) await tree.author.submit(JOBS);
  return (jobs * 1_000) / (performance.now() - fromMs);
}

/** In a thread of its own: it must not take the time of whoever submits. Whatever the site answers, or where it closes the connection, it sends the next. */
const PROGRAM = `
const { Agent, request } = require("node:http");
const { parentPort, workerData } = require("node:worker_threads");
const { url, key, body, connections } = workerData;
const agent = new Agent({ keepAlive: true, maxSockets: connections });
let sent = 0;
let isOver = false;
parentPort.once("message", () => { isOver = true; parentPort.postMessage(sent); agent.destroy(); });
const next = () => {
  if (isOver) return;
  const headers = { "content-type": "application/json", "x-api-key": key };
  let isDone = false;
  const goOn = (ms) => { if (isDone) return; isDone = true; if (ms === undefined) next(); else setTimeout(next, ms); };
  const one = request(url, { method: "POST", agent, headers }, (answer) => { sent++; answer.resume().on("end", () => goOn()).on("error", () => goOn()); });
  one.on("error", () => goOn(10));
  one.end(body);
};
for (let at = 0; at < connections; at++) next();
`;

class Flood {
  readonly #worker: Worker;

  constructor(url: string, body: string) {
    const workerData = { url, key: keyOf(HOSTILE), body, connections: CONNECTIONS };
    this.#worker = new Worker(PROGRAM, { eval: true, workerData });
  }

  /** How many requests were answered. */
  async end(): Promise<number> {
    const sent = new Promise<number>((resolve) => void this.#worker.once("message", resolve));
    this.#worker.postMessage("end");
    const count = await sent;
    await this.#worker.terminate();
    return count;
  }
}
