// What the tests of receipts share: pages of scripted sites, verified, and a log that answers as a test says.

import type { LineState } from "../../../core/mesh/model.ts";
import { checkPage } from "../../../core/mesh/proof/index.ts";
import { fakeVerify } from "../../../core/mesh/test-signatures.ts";
import { ringOf, TestSite } from "../../../core/mesh/test-site.ts";
import type { Digest } from "../../../ports/digest.ts";
import type { Fold, Log, LogAppended, LogHead, LogOpened } from "../../../ports/log.ts";
import type { VerifiedPage } from "./receipts-reign.ts";

export function siteOf(name: string, events: number, digest: Digest): TestSite {
  const site = new TestSite(ringOf(name, ["n1"], digest), digest);
  site.writeMany(events);
  return site;
}

/** The page of what follows `after`, verified on what is known up to `from`. */
export function verified(site: TestSite, after: number, size: number, from = after): VerifiedPage {
  const known = from === 0 ? site.start : accepted(site.start, site, 0, from).state;
  const { state, timestamps } = accepted(known, site, after, size);
  return { page: site.page(after, size), from: known, state, timestamps };
}

function accepted(state: LineState, site: TestSite, after: number, size: number): Omit<VerifiedPage, "page" | "from"> {
  const { digest } = site;
  const check = checkPage({ state, page: site.page(after, size), digest, verify: fakeVerify(digest) });
  for (;;) {
    const step = check.next();
    if (step.done !== true) continue;
    if (step.value.kind !== "accepted") throw new Error(step.value.kind);
    const timestamps = step.value.events.flatMap((one) => (one.kind === "event" ? [one.event.timestamp] : []));
    return { state: step.value.state, timestamps };
  }
}

interface Held {
  readonly batch: readonly Uint8Array[];
  readonly settle: PromiseWithResolvers<LogAppended>;
}

/** Appends wait until a test commits or answers them. */
export class TestLog implements Pick<Log, "head" | "open" | "append"> {
  readonly held: Held[] = [];
  opens = 0;
  readonly #fold: Fold;
  #head: LogHead = { position: 0, epoch: 0 };

  constructor(fold: Fold) {
    this.#fold = fold;
  }

  head(): LogHead {
    return this.#head;
  }

  async open(epoch: number): Promise<LogOpened> {
    this.opens++;
    this.#head = { ...this.#head, epoch };
    return { outcome: "opened", head: this.#head };
  }

  append(epoch: number, after: number, batch: readonly Uint8Array[]): Promise<LogAppended> {
    if (epoch !== this.#head.epoch || after !== this.#head.position) throw new Error(`misplaced ${epoch} ${after}`);
    const settle = Promise.withResolvers<LogAppended>();
    this.held.push({ batch, settle });
    return settle.promise;
  }

  /** What waits is applied and answered. */
  commit(): void {
    for (const { batch, settle } of this.held.splice(0)) {
      for (const data of batch) {
        this.#head = { ...this.#head, position: this.#head.position + 1 };
        this.#fold.apply({ ...this.#head, data });
      }
      settle.resolve({ outcome: "committed", position: this.#head.position });
    }
  }

  answer(answer: LogAppended | Error): void {
    for (const { settle } of this.held.splice(0)) {
      if (answer instanceof Error) settle.reject(answer);
      else settle.resolve(answer);
    }
  }
}
