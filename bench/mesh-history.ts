// A history and a site that joins: commits, the join, a cut and its healing, a start from the disk, and the audit, with the memory of each.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { COMPILE_CACHE } from "../test/servers/compile-cache.ts";
import { OPERATOR_KEY, startProxy, type TcpProxy, waitFor } from "../test/servers/index.ts";
import { TENURE_MAIN } from "../test/servers/tenure-node.ts";
import { type MeasuredSite, MeshTree } from "./mesh-sites.ts";
import { processorTimeOf, residentMb, spentBetween, totalOf } from "./processor-time.ts";
import { rounded, say } from "./stage.ts";

/** Jobs of a submission: hypercore is given blocks in batches of the same size. */
export const BATCH = 500;
/** Ten minutes of a hundred events a second. */
const HEAL_EVENTS = 60_000;
const LIMIT_MS = 900_000;
const JOINER = "joiner";
const run = promisify(execFile);

export async function history(events: number) {
  const tree = await MeshTree.start(1, [JOINER]);
  let proxy: TcpProxy | null = null;
  try {
    say(`${events} events`);
    const line = await tree.author.ownLine();
    const append_per_s = await append(tree, events);
    // What the author has still to do for its own views is no part of a join.
    await tree.measured[0]!.isShown();
    const { hostname, port } = new URL(tree.author.url);
    proxy = await startProxy({ host: hostname, port: Number(port) });
    const { joiner, ...joined } = await join(tree, proxy, line);
    await joiner.isShown();
    const heal = await healed(tree, joiner, proxy, line);
    await joiner.isShown();
    const boot = await booted(joiner, line);
    const audit = await audited(tree);
    const bytes_per_event = await bytesOf(tree, line);
    return { append_per_s, ...joined, heal, boot, audit, bytes_per_event };
  } finally {
    await tree.end();
    await proxy?.end();
  }
}

async function append(tree: MeshTree, count: number): Promise<number> {
  const startedMs = performance.now();
  for (let made = 0; made < count; made += BATCH) await tree.author.submit(Math.min(BATCH, count - made));
  return Math.round((count * 1_000) / (performance.now() - startedMs));
}

/** Memory of the joiner is read while it is asked what it has: of both halves the highest. */
async function join(tree: MeshTree, proxy: TcpProxy, line: string) {
  say("join");
  const size = await tree.measured[0]!.sizeOf(line);
  const authorPid = tree.author.node.pid!;
  const startedMs = performance.now();
  const joiner = await tree.add(JOINER, [], `http://127.0.0.1:${proxy.port}`);
  const pid = joiner.site.node.pid!;
  await joiner.has(line, 1);
  const firstMs = performance.now();
  const had = await joiner.sizeOf(line);
  const spent = [authorPid, pid].map((one) => processorTimeOf([{ label: "", pid: one }]));
  const mb = [0, 0];
  await joiner.has(line, size, (has) => {
    const half = has * 2 < size ? 0 : 1;
    mb[half] = Math.max(mb[half]!, residentMb(pid));
  });
  const endMs = performance.now();
  const cpuUs = [authorPid, pid].map((one, at) =>
    rounded(totalOf(spentBetween(spent[at]!, processorTimeOf([{ label: "", pid: one }]))) / (size - had), 1),
  );
  return {
    joiner,
    intake_per_s: Math.round(((size - had) * 1_000) / Math.max(1, endMs - firstMs)),
    join: { events: size, s: seconds(startedMs, endMs), author_cpu_us: cpuUs[0]!, joiner_cpu_us: cpuUs[1]! },
    memory: { joiner_mb_first_half: rounded(mb[0]!, 0), joiner_mb_second_half: rounded(mb[1]!, 0) },
  };
}

/** `linked_s`: until the joiner has dialled again; that is a random part of its pause between two attempts. */
async function healed(tree: MeshTree, joiner: MeasuredSite, proxy: TcpProxy, line: string) {
  say("heal");
  proxy.cut("both", "refused");
  await append(tree, HEAL_EVENTS);
  await tree.measured[0]!.isShown();
  const size = await tree.measured[0]!.sizeOf(line);
  const had = await joiner.sizeOf(line);
  let requests = 0;
  proxy.rewrite = (bytes) => {
    requests += bytes.toString("latin1").split("HTTP/1.1 ").length - 1;
    return bytes;
  };
  const startedMs = performance.now();
  await proxy.heal();
  await joiner.has(line, had + 1);
  const linkedMs = performance.now();
  await joiner.has(line, size);
  proxy.rewrite = undefined;
  return { events: size - had, requests, s: seconds(startedMs), linked_s: seconds(startedMs, linkedMs) };
}

/** With the election's own times: those of the other sites are calm, and a single node waits for them. */
async function booted({ site }: MeasuredSite, line: string) {
  say("boot");
  const size = (await site.heads()).get(line)?.size ?? 0;
  await site.node.kill9();
  site.node.configure({ election: {} });
  const startedMs = performance.now();
  site.node.start();
  const isBack = async (): Promise<boolean> =>
    ((await site.heads().catch(() => null))?.get(line)?.size ?? 0) >= size &&
    (await site.node.view())?.role === "LEADER";
  await waitFor("the site to be back", isBack, LIMIT_MS);
  const s = seconds(startedMs);
  return { events: size, s, mb: rounded(residentMb(site.node.pid!), 0) };
}

async function audited(tree: MeshTree) {
  say("audit");
  const env = { PATH: process.env["PATH"], NODE_COMPILE_CACHE: COMPILE_CACHE };
  const startedMs = performance.now();
  const args = ["--no-warnings", TENURE_MAIN, "mesh", "audit", tree.author.url, "--json", "--key", OPERATOR_KEY];
  const running = run(process.execPath, args, { env, timeout: LIMIT_MS });
  let mb = 0;
  const watch = setInterval(() => (mb = Math.max(mb, residentMb(running.child.pid ?? 0))), 100);
  const { stdout } = await running.finally(() => clearInterval(watch));
  const s = seconds(startedMs);
  const { valid, lines } = JSON.parse(stdout) as { valid: boolean; lines: readonly { through: number }[] };
  if (!valid) throw new Error(`the audit: ${stdout}`);
  return { events: lines.at(-1)!.through, s, mb: rounded(mb, 0) };
}

/** Of the last event, as it travels. */
async function bytesOf(tree: MeshTree, line: string): Promise<number> {
  const size = await tree.measured[0]!.sizeOf(line);
  const path = `/v1/mesh/pages?line=${line}&after=${size - 1}`;
  const { page } = await tree.author.get<{ page: { items: readonly string[] } | null }>(path);
  return Buffer.byteLength(page?.items.at(-1) ?? "");
}

function seconds(fromMs: number, toMs = performance.now()): number {
  return rounded((toMs - fromMs) / 1_000, 2);
}
