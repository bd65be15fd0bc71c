// A journal for the tests of one tenant's service: what is changed is committed at once, in leader epoch 3.

import type { ChainEvent, EventDraft } from "../../core/events/index.ts";
import type { JournalService } from "../journal/service.ts";
import type { Tenant } from "../journal/tenant.ts";

export class CommittedAtOnce implements Pick<JournalService, "change"> {
  /** Those that were written. */
  readonly events: EventDraft[] = [];
  nowMs = 1_000;
  readonly #tenant: Tenant;

  constructor(tenant: Tenant) {
    this.#tenant = tenant;
  }

  async change(make: Parameters<JournalService["change"]>[0]): Promise<void> {
    const newId = (): string => `e${this.events.length + 1}`;
    for (const draft of make({ newId, nowMs: this.nowMs, skippedMs: 0, leaderEpoch: 3 })) {
      this.events.push(draft);
      this.#tenant.apply({ ...draft, sequence: this.events.length } as unknown as ChainEvent, false);
    }
  }
}
