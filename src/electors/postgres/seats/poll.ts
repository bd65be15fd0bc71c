// A seat's part of the shared session (poll-hub.ts).
//
//   idle ──acquire──▶ campaigning ──▶ holding ──release──▶ idle        abandon leads to idle from anywhere
//
// Invariant: a hold ends with its session, or when its key is let go; never because another scope's does.

import { TenureError } from "../../../core/kit/errors.ts";
import type { Beat, Grant } from "../../../ports/backends/backend.ts";
import { faultOf, softened } from "../../../postgres/faults.ts";
import { beat, bump, type Holder, refuseClash, resign, type Scoped } from "./holder.ts";
import type { Line } from "../../../postgres/line.ts";
import type { PollHub } from "./poll-hub.ts";

/** One campaign, from its start to its end; a later one has an object of its own. */
interface Campaign {
  cancel: () => void;
  line: Line | undefined;
  epoch: number | undefined;
}

export class PollHolder implements Holder {
  readonly #scoped: Scoped;
  readonly #hub: PollHub;
  #campaign: Campaign | undefined;
  #served = false;

  constructor(scoped: Scoped, hub: PollHub) {
    this.#scoped = scoped;
    this.#hub = hub;
  }

  async acquire(): Promise<Grant> {
    this.abandon();
    const campaign: Campaign = { cancel: () => undefined, line: undefined, epoch: undefined };
    this.#campaign = campaign;
    try {
      await refuseClash(await this.#hub.open(), this.#scoped);
      this.#served = true;
      this.#stillWanted(campaign);
      const taking = this.#hub.take(this.#scoped.key, () => this.#ended(campaign));
      campaign.cancel = taking.cancel;
      const line = await taking.line;
      if (this.#campaign !== campaign) this.#hub.drop(line, this.#scoped.key);
      this.#stillWanted(campaign);
      campaign.line = line;
      const grant = await bump(line, this.#scoped);
      this.#stillWanted(campaign);
      campaign.epoch = grant.epoch;
      return grant;
    } catch (error) {
      if (this.#campaign === campaign) this.abandon();
      const fault = faultOf(error, { where: this.#scoped.where, scope: this.#scoped.claim.scope });
      throw this.#served ? softened(fault) : fault;
    }
  }

  async beat(epoch: number): Promise<Beat> {
    return beat(this.#held(epoch), this.#scoped, epoch);
  }

  async release(epoch: number): Promise<void> {
    const line = this.#held(epoch);
    // The server freed it with the session.
    if (line === undefined) return;
    await resign(line, this.#scoped, epoch);
    if (this.#campaign?.line !== line) return;
    this.#campaign = undefined;
    this.#hub.freed(line, this.#scoped.key);
  }

  abandon(): void {
    const campaign = this.#campaign;
    this.#campaign = undefined;
    campaign?.cancel();
    if (campaign?.line !== undefined) this.#hub.drop(campaign.line, this.#scoped.key);
  }

  async close(): Promise<void> {
    this.abandon();
  }

  #stillWanted(campaign: Campaign): void {
    if (this.#campaign === campaign) return;
    throw new TenureError("BACKEND_UNAVAILABLE", "the campaign was abandoned");
  }

  #held(epoch: number): Line | undefined {
    return this.#campaign?.epoch === epoch ? this.#campaign.line : undefined;
  }

  #ended(campaign: Campaign): void {
    if (this.#campaign !== campaign) return;
    this.#campaign = undefined;
    if (campaign.epoch !== undefined) this.#scoped.claim.lost(campaign.epoch, "session-ended");
  }
}
