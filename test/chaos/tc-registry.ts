// Changes of the registry during a run of `chaos tc`, one at a time, by whichever island: what was acknowledged must be with all, what was refused with
// nobody, and what nobody knows with all or with nobody. Each has an endpoint of its own, for one that is registered again moves. The islands' own entries are theirs to keep.

import { createHash } from "node:crypto";
import type { Random } from "../../src/core/kit/random.ts";
import type { TestIslands } from "../archipelago/test-islands.ts";

/** More than that are taken out again, oldest first. */
const ENTRIES_MAX = 20;
const CALL_MS_MAX = 20_000;

type Known = "in" | "out" | "unsure";

export class TcRegistry {
  readonly changes = { made: 0, refused: 0, unknown: 0 };
  split = 0;
  readonly #islands: TestIslands;
  readonly #random: Random;
  readonly #known = new Map<string, Known>();
  #made = 0;

  constructor(islands: TestIslands, random: Random) {
    this.#islands = islands;
    this.#random = random;
  }

  /** Returns what came of it. */
  async change(): Promise<string> {
    const island = this.#random.pick(this.#islands.all);
    if (island.node.pid === undefined) return "no change";
    const present = [...this.#known].filter(([, known]) => known === "in").map(([hash]) => hash);
    const oldest = present.length > ENTRIES_MAX ? present[0] : undefined;
    const hash =
      oldest ??
      createHash("sha256")
        .update(String(this.#made++))
        .digest("hex");
    const before: Known = oldest === undefined ? "out" : "in";
    this.#known.set(hash, "unsure");
    const verb = oldest === undefined ? "register" : "unregister";
    const call = { body: { backend_hash: hash, endpoint: `https://${hash.slice(0, 16)}` }, limitMs: CALL_MS_MAX };
    const answer = await island.call(`/v1/tc/rm/${verb}`, call).catch(() => null);
    this.#known.set(hash, this.#knownBy(answer, before));
    return `${verb} ${hash.slice(0, 8)}… at ${island.id}: ${answer?.status === 200 ? "done" : String(answer?.body["error"])}`;
  }

  /** Once they agree. Returns what is wrong. */
  async check(): Promise<readonly string[]> {
    const views = await this.#islands.views();
    const wrong: string[] = [];
    for (const [hash, known] of this.#known) {
      const has = views.filter(({ registry }) => registry.some((one) => one.backend_hash === hash));
      const isRight = has.length === 0 ? known !== "in" : has.length === views.length && known !== "out";
      if (!isRight)
        wrong.push(`${hash.slice(0, 8)}… is ${known}, and at ${has.map(({ self }) => self.identity).join()}`);
      // Whatever it was: from now on it must stay.
      this.#known.set(hash, has.length === 0 ? "out" : "in");
    }
    this.split += wrong.length;
    return wrong;
  }

  #knownBy(answer: { readonly status: number; readonly body: { readonly error?: unknown } } | null, before: Known) {
    if (answer?.status === 200) {
      this.changes.made++;
      return before === "in" ? "out" : "in";
    }
    const isRefused = ["tc_rm_replication_failed", "tc_not_leader", "tc_unavailable"].includes(
      String(answer?.body.error),
    );
    this.changes[isRefused ? "refused" : "unknown"]++;
    return isRefused ? before : "unsure";
  }
}
