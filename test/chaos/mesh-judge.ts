// What every site of `chaos mesh` must have in the end, compared with the harness's ledger and with each line's author: the same bytes
// everywhere, every acknowledged job, each planted fork proven and no other, and clocks that nobody's future has moved.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Ring } from "../../src/core/mesh/model.ts";
import { verifyEvidence } from "../../src/core/mesh/proof/index.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import { verifyEd25519 } from "../../src/drivers/system/signatures.ts";
import type { Heads, TestSite } from "../mesh/test-sites.ts";
import { COMPILE_CACHE } from "../servers/compile-cache.ts";
import { OPERATOR_KEY, waitFor } from "../servers/index.ts";
import { TENURE_MAIN } from "../servers/tenure-node.ts";
import type { Hostile } from "./mesh-hostile.ts";
import { directUrl, type MeshStage } from "./mesh-stage.ts";
import type { SiteTraffic } from "./mesh-traffic.ts";
import type { Twin } from "./mesh-twin.ts";

const run = promisify(execFile);
/** Generous: what is asked is whether they agree at all. `heal_ms` says how soon they did. */
const CONVERGE_MS_MAX = 180_000;
const AUDIT_MS_MAX = 120_000;
/** mesh.max_skew_ms, and as much for the clock of this machine. */
const SKEW_MS_MAX = 2_000;

export interface MeshWorld {
  readonly stage: MeshStage;
  readonly traffic: readonly SiteTraffic[];
  readonly hostile: Hostile;
  readonly twins: readonly Twin[];
}

export interface MeshVerdict {
  /** Acknowledged jobs that are missing, at any site. */
  readonly lost: number;
  /** Pairs of a site and a line whose bytes are not the author's. */
  readonly diverged: number;
  readonly events: number;
  readonly completed: number;
  readonly found: number;
  readonly falseForks: number;
  readonly failed: readonly string[];
}

/** Every node of every site has the same head of every line that was not forked: these heads. */
export async function converge(world: MeshWorld): Promise<Heads> {
  const lines = await linesOf(world);
  const shown = world.stage.sites.flatMap((site) => site.cluster.nodes.map((node) => site.at(node)));
  let last = "";
  let agreed: Heads = new Map();
  const areSame = async (): Promise<boolean> => {
    const heads = await Promise.all(shown.map((site) => site.heads().catch(() => null)));
    const texts = heads.map((one) => textOf(one, lines));
    last = shown.map(({ id, node }, at) => `${id}/${node.id}: ${texts[at]}`).join("\n");
    agreed = heads[0] ?? agreed;
    return texts.every((text) => text === texts[0] && !text.includes("-"));
  };
  await waitFor("all sites to agree", areSame, CONVERGE_MS_MAX).catch(async (error: unknown) => {
    throw new Error(`${(error as Error).message}\n${last}\n${await world.stage.links()}`);
  });
  return agreed;
}

function textOf(heads: Heads | null, lines: readonly string[]): string {
  return lines
    .map((line) => `${line.split(".")[0]} ${heads?.get(line)?.size ?? "-"} ${heads?.get(line)?.root}`)
    .join(", ");
}

async function linesOf({ stage, hostile }: MeshWorld): Promise<readonly string[]> {
  const own = await Promise.all(stage.sites.map((site) => site.ownLine()));
  if (own.includes("")) throw new Error(`a site has no line: ${JSON.stringify(own)}`);
  return [...own, hostile.victim.line.line, hostile.evil.line.line];
}

/** `agreed`: what converge() gave. A site may write while it is read (that another one registered again), so that is all that is compared. */
export async function judge(world: MeshWorld, agreed: Heads): Promise<MeshVerdict> {
  const { stage, traffic, hostile } = world;
  const failed: string[] = [];
  const byLine = await itemsByLine(world, agreed);
  let [diverged, lost, events, completed] = [0, 0, 0, 0];
  for (const [line, { author, at }] of byLine) {
    events += author.length;
    completed += author.filter((item) => item.includes('"eventType":"build:completed"')).length;
    for (const [site, items] of at) {
      if (isSame(items, author)) continue;
      diverged++;
      failed.push(`${site} has other bytes of ${line} than its author: ${items.length} of ${author.length} events`);
    }
  }
  for (const { site, acked } of traffic) {
    const { at } = byLine.get(await site.ownLine())!;
    for (const [where, items] of at) {
      const missing = missingOf(acked, items);
      if (missing.length > 0) failed.push(`${where} misses ${missing.length} acknowledged jobs, first ${missing[0]}`);
      lost += missing.length;
    }
  }
  for (const stranger of [hostile.victim, hostile.evil]) {
    const { author } = byLine.get(stranger.line.line)!;
    if (author.length !== stranger.line.size) failed.push(`${stranger.id}: ${author.length} of ${stranger.line.size}`);
  }
  failed.push(...(await clocks(stage, byLine)), ...(await audits(stage)));
  const forks = await forksOf(world, byLine);
  return { lost, diverged, events, completed, ...forks, failed: [...failed, ...forks.failed] };
}

interface LineItems {
  /** As the line's own site serves them; of the strangers, as they were written. */
  readonly author: readonly string[];
  readonly at: ReadonlyMap<string, readonly string[]>;
}

async function itemsByLine({ stage, hostile }: MeshWorld, agreed: Heads): Promise<ReadonlyMap<string, LineItems>> {
  const found = new Map<string, LineItems>();
  const all = await Promise.all(stage.sites.map(async (site) => [site.id, await site.itemsByLine()] as const));
  const at = (line: string): Map<string, readonly string[]> => {
    const size = agreed.get(line)?.size ?? 0;
    return new Map(all.map(([id, byLine]) => [id, (byLine.get(line) ?? []).slice(0, size)]));
  };
  for (const site of stage.sites) {
    const line = await site.ownLine();
    const everywhere = at(line);
    found.set(line, { author: everywhere.get(site.id)!, at: everywhere });
  }
  for (const { line } of [hostile.victim, hostile.evil]) {
    const author = Array.from({ length: line.size }, (_, place) => line.text(place + 1));
    found.set(line.line, { author, at: at(line.line) });
  }
  return found;
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((item, at) => item === other[at]);
}

function missingOf(acked: ReadonlySet<string>, items: readonly string[]): readonly string[] {
  const there = new Set(items.flatMap((item) => /"tag":"([^"]+)"/.exec(item)?.[1] ?? []));
  return [...acked].filter((tag) => !there.has(tag));
}

async function clocks(stage: MeshStage, byLine: ReadonlyMap<string, LineItems>): Promise<readonly string[]> {
  const failed: string[] = [];
  for (const site of stage.sites) {
    const { author } = byLine.get(await site.ownLine())!;
    const latest = Math.max(...author.map((item) => Number(/"timestamp":(\d+)/.exec(item)?.[1] ?? 0)));
    const aheadMs = latest - Date.now();
    if (aheadMs > SKEW_MS_MAX) failed.push(`the clock of ${site.id} is ${Math.round(aheadMs / 1_000)} s ahead`);
  }
  return failed;
}

async function audits(stage: MeshStage): Promise<readonly string[]> {
  const failed: string[] = [];
  const env = { PATH: process.env["PATH"], NODE_COMPILE_CACHE: COMPILE_CACHE };
  for (const { id, node } of stage.sites) {
    const args = ["--no-warnings", TENURE_MAIN, "mesh", "audit", directUrl(node), "--json", "--key", OPERATOR_KEY];
    const { stdout } = await run(process.execPath, args, { env, timeout: AUDIT_MS_MAX }).catch(
      (error: { readonly stdout?: string; readonly message: string }) => ({ stdout: error.stdout ?? error.message }),
    );
    if (!stdout.includes('"valid":true')) failed.push(`the audit of ${id}: ${stdout}`);
  }
  return failed;
}

interface ForkEvent {
  readonly eventType: string;
  readonly payload: { readonly line: string; readonly evidence: unknown };
}

async function forksOf({ stage, twins }: MeshWorld, byLine: ReadonlyMap<string, LineItems>) {
  const failed: string[] = [];
  const planted = twins.filter(({ isForked }) => isForked);
  const rings = new Map<string, Ring>();
  for (const { site, line } of planted) rings.set(line, await ringOf(site));
  const proven = new Set<string>();
  let falseForks = 0;
  for (const { author } of byLine.values()) {
    for (const item of author.filter((text) => text.includes('"eventType":"controller:forked"'))) {
      const { line, evidence } = (JSON.parse(item) as ForkEvent).payload;
      const ring = rings.get(line);
      const tools = { digest: systemDigest, verify: verifyEd25519 };
      if (ring !== undefined && verifyEvidence(evidence, ring, tools)) proven.add(line);
      else {
        falseForks++;
        failed.push(`evidence of a fork that was not planted, or that does not verify: ${item}`);
      }
    }
  }
  for (const site of stage.sites) {
    for (const id of await forkedAt(site)) {
      if (planted.some((twin) => twin.site.id === id)) continue;
      falseForks++;
      failed.push(`${site.id} calls ${id} forked, which it is not`);
    }
  }
  const marked = await Promise.all(stage.sites.map((site) => forkedAt(site)));
  const found = planted.filter(
    (twin) => proven.has(twin.line) && marked.every((ids) => ids.includes(twin.site.id)),
  ).length;
  if (found < planted.length) failed.push(`${planted.length - found} planted forks were not found at every site`);
  return { found, falseForks, failed };
}

/** Until every site calls every planted one forked; in vain, if it does not end soon. */
export async function forksFound({ stage, twins }: MeshWorld): Promise<void> {
  const planted = twins.filter(({ isForked }) => isForked).map(({ site }) => site.id);
  const areFound = async (): Promise<boolean> => {
    const marked = await Promise.all(stage.sites.map((site) => forkedAt(site).catch((): string[] => [])));
    return marked.every((ids) => planted.every((id) => ids.includes(id)));
  };
  await waitFor("planted forks to be found", areFound, CONVERGE_MS_MAX);
}

async function forkedAt(site: TestSite): Promise<readonly string[]> {
  const path = "/api/controllers?all=true";
  const { controllers } = await site.get<{ controllers: readonly { id: string; status: string }[] }>(path);
  return controllers.filter(({ status }) => status === "forked").map(({ id }) => id);
}

async function ringOf(site: TestSite): Promise<Ring> {
  const { own } = await site.get<{ own: { readonly ring: Ring } | null }>("/v1/mesh/sites");
  if (own === null) throw new Error(`${site.id} has no ring`);
  return own.ring;
}
