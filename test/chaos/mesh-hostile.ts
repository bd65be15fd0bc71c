// A hostile site of `chaos mesh`: it is registered, its key is valid, and it delivers pages of its victim's line that are not the victim's.
// Both exist in the harness alone, with real keys, so that the harness knows what is true. The victim's own pages are delivered too, by
// itself and by the hostile site, and must be at every site in the end. Both keep a link to every site, as children do that have nothing of
// anybody's line: a site that was started compares itself with each peer that has registered, and signs nothing before.

import { assertNever } from "../../src/core/kit/assert.ts";
import { setTimeout as sleep } from "node:timers/promises";
import type { Page } from "../../src/core/mesh/model.ts";
import type { Random } from "../../src/core/kit/random.ts";
import { type Outcome, Stranger, withItem } from "../mesh/test-hostile.ts";
import { keyOf, type TestSite } from "../mesh/test-sites.ts";
import type { TenureCall } from "../servers/tenure-node.ts";
import type { TenureNode } from "../servers/index.ts";
import { direct, directUrl, type MeshStage } from "./mesh-stage.ts";

export const STRANGERS = ["victim", "hostile"] as const;
const PAUSE_MS = 150;
/** A link has something to say every second. */
const SILENCE_MS_MAX = 10_000;
const ITEMS = 5;
/** One more than a page may have. */
const OVERSIZED_ITEMS = 513;
const FUTURE_MS = 3_600_000;

export const ATTACKS = [
  "changed-byte",
  "forged-signature",
  "foreign-key",
  "swapped",
  "stub",
  "replay",
  "oversized",
] as const;
export type Attack = (typeof ATTACKS)[number];

export class Hostile {
  readonly victim: Stranger;
  readonly evil: Stranger;
  readonly sent: Record<Attack, number> = { ...NONE };
  readonly refused: Record<Attack, number> = { ...NONE };
  /** Events of an hour from now, which are taken, as they are in order otherwise. */
  future = 0;
  readonly #stage: MeshStage;
  readonly #random: Random;
  readonly #over = new AbortController();
  #links: Promise<unknown> = Promise.resolve();
  #target: TenureNode;

  constructor(stage: MeshStage, random: Random) {
    this.#stage = stage;
    this.#random = random;
    this.#target = stage.hub.node;
    const target = { call: this.#call.bind(this) } as Pick<TenureNode, "call">;
    const [victim, evil] = STRANGERS.map((id) => new Stranger(id, target));
    this.victim = victim!;
    this.evil = evil!;
    this.victim.line.writeMany(ITEMS);
    this.evil.line.writeMany(ITEMS);
  }

  /** At every site: each must be able to take their pages from the first moment on. */
  async register(): Promise<void> {
    for (const site of this.#stage.sites) {
      this.#target = await this.#stage.waitForLeader(site);
      for (const stranger of [this.victim, this.evil]) {
        const { status, body } = await stranger.register(site.id);
        if (status !== 200) throw new Error(`${site.id} did not register ${stranger.id}: ${JSON.stringify(body)}`);
      }
    }
    const { sites } = this.#stage;
    this.#links = Promise.all(sites.flatMap((site) => [this.victim, this.evil].map(({ id }) => this.#link(site, id))));
  }

  async end(): Promise<void> {
    this.#over.abort();
    await this.#links;
  }

  async run(signal: AbortSignal, isDone: () => boolean): Promise<void> {
    for (let turn = 0; !signal.aborted && !isDone(); turn++) {
      const site = this.#random.pick(this.#stage.sites);
      // Sites that are being killed do not answer: such an attack is not counted, and another one follows.
      await this.#strike(site, ATTACKS[turn % ATTACKS.length]!).catch(() => undefined);
      await sleep(PAUSE_MS);
    }
  }

  get hasTriedAll(): boolean {
    return this.future > 0 && ATTACKS.every((attack) => this.sent[attack] > 0);
  }

  /** What is true, as a whole. A call that is not answered in time, by a site that was just healed and has everything to catch up with, is made again. */
  async deliverAll(): Promise<void> {
    for (;;) {
      try {
        return await this.#deliverRest();
      } catch (error) {
        if (this.#over.signal.aborted) throw error;
        await sleep(PAUSE_MS);
      }
    }
  }

  async #deliverRest(): Promise<void> {
    this.#target = await this.#stage.waitForLeader(this.#stage.hub);
    for (const stranger of [this.victim, this.evil]) {
      const have = await this.#sizeAt(stranger);
      const { size } = stranger.line;
      for (let after = have; after < size; after += ITEMS)
        await stranger.send(stranger.line.page(after, Math.min(size, after + ITEMS)));
    }
  }

  /** Whenever it breaks, it is dialled again. */
  async #link(site: TestSite, stranger: string): Promise<void> {
    while (!this.#over.signal.aborted) {
      await this.#listen(site, stranger).catch(() => undefined);
      await sleep(PAUSE_MS);
    }
  }

  async #listen(site: TestSite, stranger: string): Promise<void> {
    const leader = await this.#stage.leaderOf(site);
    if (leader === null) return;
    const silence = new AbortController();
    const timer = setTimeout(() => silence.abort(), SILENCE_MS_MAX);
    try {
      const { body } = await fetch(`${directUrl(leader)}/v1/mesh/stream`, {
        method: "POST",
        headers: { "x-api-key": keyOf(stranger), "content-type": "application/json" },
        body: JSON.stringify({ controller: stranger, heads: [] }),
        signal: AbortSignal.any([this.#over.signal, silence.signal]),
      });
      const reader = body!.getReader();
      while (!(await reader.read()).done) timer.refresh();
    } finally {
      clearTimeout(timer);
    }
  }

  async #strike(site: TestSite, attack: Attack): Promise<void> {
    const leader = await this.#stage.leaderOf(site);
    if (leader === null) return;
    this.#target = leader;
    const have = await this.#sizeAt(this.victim);
    // What was never taken there can't be repeated.
    if (attack === "replay" && have === 0) return;
    const { line } = this.victim;
    while (line.size < have + ITEMS) line.write();
    const outcomes = await this.evil.send(this.#bad(attack, have));
    this.sent[attack]++;
    if (outcomes.every(isRefused)) this.refused[attack]++;
    const deliverer = this.#random.chance(0.5) ? this.victim : this.evil;
    await deliverer.send(line.page(have, have + ITEMS));
    if (attack === "replay") await this.#sendFuture();
  }

  #bad(attack: Attack, have: number): Page {
    const { line } = this.victim;
    const next = line.page(have, have + ITEMS);
    switch (attack) {
      case "changed-byte":
        return withItem(next, 2, (text) => text.replace("job-", "jOb-"));
      case "forged-signature":
        return { ...next, checkpoint: spoilt(next.checkpoint) };
      case "foreign-key":
        return { ...next, checkpoint: this.evil.line.sign(line.checkpoint(have + ITEMS, have)) };
      case "swapped":
        return { ...next, items: next.items.toReversed() };
      case "stub":
        return { ...next, items: next.items.map((item, at) => (at === 1 ? { hash: line.hash(have + 2) } : item)) };
      case "replay":
        return line.page(Math.max(0, have - ITEMS), have);
      case "oversized":
        return { ...next, items: Array.from({ length: OVERSIZED_ITEMS }, () => "{}") };
      default:
        return assertNever(attack, "attack");
    }
  }

  async #sendFuture(): Promise<void> {
    const { line } = this.evil;
    line.write({ timestamp: Date.now() + FUTURE_MS });
    const [outcome] = await this.evil.send(line.page(await this.#sizeAt(this.evil), line.size));
    if (outcome?.accepted !== undefined && outcome.accepted > 0) this.future++;
  }

  async #sizeAt(stranger: Stranger): Promise<number> {
    const { status, body } = await direct<{ heads: readonly string[] }>(this.#target, "/v1/mesh/heads");
    if (status !== 200) throw new Error(`heads were answered with ${status}`);
    const note = body.heads.find((head) => head.startsWith(`${stranger.line.line}\n`));
    return Number(note?.split("\n")[1] ?? 0);
  }

  async #call(path: string, { body, key }: TenureCall = {}) {
    const answer = await direct(this.#target, path, { body, key: key ?? undefined });
    return { ...answer, headers: {} };
  }
}

const NONE: Readonly<Record<Attack, number>> = {
  "changed-byte": 0,
  "forged-signature": 0,
  "foreign-key": 0,
  swapped: 0,
  stub: 0,
  replay: 0,
  oversized: 0,
};

/** Where the page was known by then, from another site, nothing of it was taken either. */
function isRefused({ accepted = 0 }: Outcome): boolean {
  return accepted === 0;
}

/** Another letter near the end of the signature's line: the key is known, the signature is not valid. */
function spoilt(note: string): string {
  return `${note.slice(0, -6)}${note.at(-6) === "A" ? "B" : "A"}${note.slice(-5)}`;
}
