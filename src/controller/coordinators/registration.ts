// This node registers itself: its island, and the endpoint at which the island can be reached here. It asks the leader until the registry that
// this node shows has both; from then on nothing is sent. An island whose hash has changed (it was recovered or restored) moves the endpoint, and an
// endpoint that this node has left is taken out.

import type { RegistryEntry } from "../../core/lease/index.ts";
import { sleep } from "../../loops/time.ts";
import type { RegistryAnswer } from "../../ports/coordinators.ts";
import type { CoordinatorContext } from "./context.ts";
import { REGISTER_AGAIN_MS_MAX, REGISTER_AGAIN_MS_MIN } from "./limits.ts";
import type { RegistryWrites } from "./registry-writes.ts";

export class Registration {
  readonly #context: CoordinatorContext;
  readonly #writes: RegistryWrites;
  readonly #backendHash: string;
  /** Where this node was reached before it moved; null: nowhere else. */
  readonly #formerEndpoint: string | null;
  #isWithdrawn = false;
  #underWay: Promise<unknown> = Promise.resolve();

  constructor(context: CoordinatorContext, writes: RegistryWrites, backendHash: string) {
    this.#context = context;
    this.#writes = writes;
    this.#backendHash = backendHash;
    const { self, ledger, leases = [], endpoint } = context.options;
    const voter = ledger.roster?.voters.find(({ peer }) => peer === self);
    // Who was stopped in order is no voter any more, and is still registered.
    const known = voter ?? leases.find(({ identity }) => identity === context.selfId) ?? { endpoint };
    this.#formerEndpoint = known.endpoint === endpoint ? null : known.endpoint;
  }

  /** Also before the next attempt: all nodes of an island that starts would ask at once. */
  async live(): Promise<void> {
    const { clock, random } = this.#context.options;
    while (!this.#context.isStopped) {
      await sleep(clock, random.between(REGISTER_AGAIN_MS_MIN, REGISTER_AGAIN_MS_MAX));
      const due = this.#due;
      if (due === null || this.#context.isStopped) continue;
      this.#underWay = this.#writes.write({ kind: "registry", ...due, isForwarded: false });
      await this.#underWay;
    }
  }

  /** For as long as this node is away. Another server of the island may still be registered. */
  async withdraw(): Promise<RegistryAnswer> {
    this.#isWithdrawn = true;
    await this.#underWay;
    return this.#writes.write({ kind: "registry", change: "unregister", entry: this.#entry, isForwarded: false });
  }

  returned(): void {
    this.#isWithdrawn = false;
  }

  get #entry(): RegistryEntry {
    return { backendHash: this.#backendHash, endpoint: this.#context.options.endpoint };
  }

  /** What the registry lacks, or has and should not; null: it is right, or it is not this node's to change now. */
  get #due(): { readonly change: "register" | "unregister"; readonly entry: RegistryEntry } | null {
    const { clusterId, shown } = this.#context.desk.ledger;
    if (this.#isWithdrawn || clusterId === null) return null;
    const has = ({ backendHash, endpoint }: RegistryEntry): boolean =>
      shown?.registry.some((one) => one.backendHash === backendHash && one.endpoint === endpoint) === true;
    if (!has(this.#entry)) return { change: "register", entry: this.#entry };
    if (this.#formerEndpoint === null || this.#isTaken(this.#formerEndpoint)) return null;
    const former = { backendHash: this.#backendHash, endpoint: this.#formerEndpoint };
    return has(former) ? { change: "unregister", entry: former } : null;
  }

  /** Another member is there by now, perhaps one of the same island. */
  #isTaken(endpoint: string): boolean {
    const { members, options } = this.#context;
    return members.endpoints(options.clock.wallMs()).includes(endpoint);
  }
}
