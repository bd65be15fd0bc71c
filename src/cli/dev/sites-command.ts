// `tenure dev --sites 3`: three sites that share their histories, with a few jobs at each. Keys cut one off and heal it, and kill another. With --for
// one is cut off after a third of the time and healed after two thirds; at the end the histories must be equal.
//
// Equal is what signed heads say: the same size and root of every line at every site.

import { ERRORS } from "../../core/kit/errors.ts";
import { duration, json } from "../kit/output.ts";
import * as limits from "./limits.ts";
import { type DevSite, DevSites, type Heads } from "./sites.ts";
import { SiteLoad } from "./sites-load.ts";
import { type Flags, onEnd, pause, readKeys } from "./terminal.ts";

const EXIT_NOT_WELL = 1;
const EXIT_NEVER_UP = ERRORS.ERR_NO_LEADER.exit;
const CUT_SITE = "west";
const KILLED_SITE = "east";
const CUT_AT = 1 / 3;
const HEAL_AT = 2 / 3;

interface Summary {
  readonly sites: readonly { readonly id: string; readonly events: number }[];
  /** Which was cut off. */
  readonly cut: string | null;
  readonly equal: boolean;
  /** From the moment of healing until every site had what the others had written until then; null: nothing was healed, or it never had. */
  readonly heal_ms: number | null;
}

type Tell = (text: string) => void;

export async function runSites({ forMs, json: isForPrograms }: Flags): Promise<number> {
  const out = isForPrograms ? process.stderr : process.stdout;
  const startedMs = performance.now();
  const tell: Tell = (text) =>
    void out.write(`${((performance.now() - startedMs) / 1_000).toFixed(3).padStart(8)} s  ${text}\n`);
  const stop = new AbortController();
  let code: number | null = null;
  let failures = 0;
  const end = (exit: number | null): void => {
    code ??= exit;
    stop.abort();
  };
  onEnd(end);
  tell("starting three sites of one node each");
  const sites = await DevSites.create({
    restartAfterMs: limits.RESTART_AFTER_MS,
    started: (id, pid) => tell(`${id} runs as process ${pid}`),
    died: (id, how, isFounded) => {
      tell(`${id} has ended (${how}), and is started again in ${duration(limits.RESTART_AFTER_MS)}`);
      if (!isFounded && ++failures >= limits.FAILED_STARTS_MAX) {
        tell(`no site comes up; giving up. ${id} said: ${sites.lastWords(id) ?? "nothing"}`);
        end(EXIT_NEVER_UP);
      }
    },
  });
  const world = new SitesWorld(sites, tell);
  const loads = sites.sites.map(({ id, url }) => new SiteLoad(id, url, sites.key));
  let summary: Summary | null = null;
  try {
    sites.start();
    introduce(sites, tell);
    const keys = readKeys(
      (name) => press(name, world),
      () => end(null),
    );
    if (forMs !== undefined) void world.arrange(forMs, stop.signal).then(() => end(null));
    await Promise.all([world.watch(stop.signal), ...loads.map((load) => load.run(stop.signal))]);
    keys();
    if (code === null) summary = await world.summary(new AbortController().signal);
  } finally {
    tell("stopping");
    sites.settle();
    await Promise.all(loads.map((load) => load.close()));
    await sites.stop();
    tell("ended");
  }
  if (isForPrograms && summary !== null) process.stdout.write(json(summary));
  if (code !== null) return code;
  if (summary === null || summary.sites.length === 0) return EXIT_NEVER_UP;
  return summary.equal && (forMs === undefined || summary.heal_ms !== null) ? 0 : EXIT_NOT_WELL;
}

function introduce({ sites, key }: DevSites, tell: Tell): void {
  const [hub] = sites;
  tell("hub is the parent of east and west: they dial it, and it passes on what each of them writes");
  for (const { id, url } of sites) tell(`the page of ${id}: ${url}/?view=sites#key=${key}`);
  tell(`as an operator: export TENURE_URL=${hub?.url} TENURE_API_KEY=${key}`);
  const tenure = import.meta.url.endsWith(".ts") ? "npm run -s tenure --" : "tenure";
  tell(`then, for instance: ${tenure} mesh sites`);
  tell(`  or prove the whole history of one from outside: ${tenure} mesh audit ${sites.at(-1)?.url}`);
  tell(`keys: c cut ${CUT_SITE} off or heal it · k kill -9 ${KILLED_SITE}, it is back after 3 s · q quit`);
}

function press(name: string, world: SitesWorld): void {
  if (name === "c") world.toggle();
  else if (name === "k") world.kill();
}

/** The three sites, watched. */
class SitesWorld {
  readonly #sites: DevSites;
  readonly #tell: Tell;
  #heads: readonly (Heads | null)[] = [];
  #hadAll = false;
  #wasCut = false;
  #healedAtMs: number | null = null;
  #healMs: number | null = null;
  /** What was written before it was healed: every site must have it. */
  #owed: Heads | null = null;
  #toldMs = 0;

  constructor(sites: DevSites, tell: Tell) {
    this.#sites = sites;
    this.#tell = tell;
  }

  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#look();
      const nowMs = performance.now();
      if (nowMs - this.#toldMs >= limits.PLAIN_EVERY_MS && this.#heads.some((heads) => heads !== null)) {
        this.#toldMs = nowMs;
        this.#tell(this.#text());
      }
      await pause(limits.DEV_CHECK_MS, signal);
    }
  }

  /** By itself, with --for: waits for what must be so first, for some time. */
  async arrange(forMs: number, signal: AbortSignal): Promise<void> {
    const startedMs = performance.now();
    const lateMs = Math.min(forMs, limits.SITES_LATE_MS_MAX);
    const passedMs = (): number => performance.now() - startedMs;
    const until = async (atMs: number, isSo: () => boolean): Promise<void> => {
      while (!signal.aborted && (passedMs() < atMs || (!isSo() && passedMs() < atMs + lateMs))) {
        await pause(limits.DEV_CHECK_MS, signal);
      }
    };
    await until(forMs * CUT_AT, () => this.#hadAll);
    if (signal.aborted) return;
    this.#cut();
    await until(passedMs() + forMs * (HEAL_AT - CUT_AT), () => true);
    if (signal.aborted) return;
    await this.#heal();
    await until(forMs, () => this.#healMs !== null);
  }

  toggle(): void {
    if (this.#link?.isCut === true) void this.#heal();
    else this.#cut();
  }

  kill(): void {
    this.#tell(`kill -9 ${KILLED_SITE}`);
    this.#sites.kill(KILLED_SITE);
  }

  /** When nothing is written any more: until all are equal, or for some time. */
  async summary(signal: AbortSignal): Promise<Summary> {
    this.#link?.heal();
    const endMs = performance.now() + limits.SITES_LATE_MS_MAX;
    do {
      await this.#look();
      if (this.#areEqual) break;
      await pause(limits.DEV_CHECK_MS, signal);
    } while (performance.now() < endMs);
    this.#tell(`${this.#text()}: the histories are ${this.#areEqual ? "equal" : "NOT equal"}`);
    return {
      sites: this.#sites.sites.map(({ id }, at) => ({ id, events: eventsIn(this.#heads[at] ?? null) })),
      cut: this.#wasCut ? CUT_SITE : null,
      equal: this.#areEqual,
      heal_ms: this.#healMs,
    };
  }

  get #link(): DevSite["link"] {
    return this.#sites.sites.find(({ id }) => id === CUT_SITE)?.link ?? null;
  }

  #cut(): void {
    this.#tell(`${CUT_SITE} is cut off: it goes on with its own jobs, and the others see it grow old`);
    this.#wasCut = true;
    this.#owed = null;
    this.#healedAtMs = null;
    this.#link?.cut();
  }

  async #heal(): Promise<void> {
    await this.#look();
    this.#owed = longest(this.#heads);
    this.#healedAtMs = performance.now();
    this.#tell(`the link of ${CUT_SITE} is healed`);
    this.#link?.heal();
  }

  async #look(): Promise<void> {
    this.#heads = await this.#sites.heads();
    const count = this.#sites.sites.length;
    const hasAll = this.#heads.every((heads) => heads !== null && heads.size === count);
    if (hasAll && !this.#hadAll) this.#tell("every site has the events of all three");
    this.#hadAll ||= hasAll;
    const owed = this.#owed;
    if (owed === null || this.#healedAtMs === null) return;
    const hasPaid = this.#heads.every((heads) =>
      [...owed].every(([line, { size }]) => (heads?.get(line)?.size ?? 0) >= size),
    );
    if (!hasPaid) return;
    this.#healMs = Math.round(performance.now() - this.#healedAtMs);
    this.#owed = null;
    this.#tell(`every site has all that was written during the cut, ${duration(this.#healMs)} after it was healed`);
  }

  get #areEqual(): boolean {
    const [first, ...others] = this.#heads;
    if (first === null || first === undefined || !this.#hadAll) return false;
    return others.every((heads) => heads !== null && heads.size === first.size && isSame(heads, first));
  }

  #text(): string {
    const each = this.#sites.sites.map(({ id, link }, at) => {
      const heads = this.#heads[at] ?? null;
      if (heads === null) return `${id} does not answer`;
      const sizes = [...heads].map(([line, { size }]) => `${line.slice(0, line.indexOf("."))} ${size}`).toSorted();
      return `${id}${link?.isCut === true ? " (cut off)" : ""} has ${sizes.join(", ") || "nothing"}`;
    });
    return each.join("; ");
  }
}

function eventsIn(heads: Heads | null): number {
  return [...(heads?.values() ?? [])].reduce((sum, { size }) => sum + size, 0);
}

function longest(all: readonly (Heads | null)[]): Heads {
  const found = new Map<string, { readonly size: number; readonly root: string }>();
  for (const heads of all) {
    for (const [line, head] of heads ?? []) if (head.size > (found.get(line)?.size ?? 0)) found.set(line, head);
  }
  return found;
}

function isSame(one: Heads, other: Heads): boolean {
  return [...one].every(([line, { size, root }]) => other.get(line)?.size === size && other.get(line)?.root === root);
}
