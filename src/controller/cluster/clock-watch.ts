// This node's clock among the others': what beacons say of theirs goes in, and a tick a second; out come the time of day that is
// believed (core/health/clocks.ts), and that this node is unwilling to lead while its clock is not the majority's. A leader whose
// clock is found to be off hands over by that alone; where nobody else can lead, it leads on.

import { Clocks, type ClockView } from "../../core/health/index.ts";
import type { PeerKey } from "../../core/kit/ids.ts";
import { isMember } from "../../core/raft/index.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Lead } from "../../ports/consensus.ts";
import type { Willingness } from "./node-drain.ts";

export interface ClockWatchOptions {
  readonly consensus: Pick<Lead, "peer" | "status">;
  readonly clock: Pick<Clock, "monotonicMs" | "wallMs">;
  readonly willingness: Pick<Willingness, "set">;
}

export class ClockWatch {
  readonly #options: ClockWatchOptions;
  readonly #clocks: Clocks;

  constructor(options: ClockWatchOptions) {
    this.#options = options;
    this.#clocks = new Clocks(options.consensus.peer);
  }

  /** What a peer's wall clock shows, by its own word; of one that is no member nothing is heard. */
  heard(from: PeerKey, wallMs: number): void {
    const { configuration } = this.#options.consensus.status();
    if (isMember(configuration, from)) this.#clocks.heard(this.#moment(), from, wallMs, configuration.voters);
  }

  tick(): ClockView {
    const { consensus, willingness } = this.#options;
    const view = this.#clocks.tick(this.#moment(), consensus.status().configuration.voters);
    willingness.set("clock", view.state === "skewed");
    return view;
  }

  /** The time of day, where a majority of the voters' clocks agrees on it; null: none does. */
  believedMs(): number | null {
    return this.#clocks.believedMs(this.#moment());
  }

  #moment(): { readonly nowMs: number; readonly wallMs: number } {
    const { clock } = this.#options;
    return { nowMs: clock.monotonicMs(), wallMs: clock.wallMs() };
  }
}
