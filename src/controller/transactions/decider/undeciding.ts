// Homes that decided nothing the last time they were asked to: silent ones, and those that refused without a record (they can't write). Before anything is
// prepared for such a home it is asked whether it decides now.

import { afterAsking, type Heard, isUndecidedAtHome } from "../../../core/txn/course.ts";
import type { BackendHash, TxnRequest } from "../../../core/txn/model.ts";

export class Undeciding {
  readonly #homes = new Map<BackendHash, "silent" | "refused">();

  has(home: BackendHash): boolean {
    return this.#homes.has(home);
  }

  /** What came of a call to this island. `isHome`: of the transaction that it was about. */
  note(island: BackendHash, kind: TxnRequest["kind"], heard: Heard, isHome: boolean): void {
    if (heard === "lost") return;
    const before = this.#homes.get(island);
    if (kind === "recover" && afterAsking(island, heard).kind === "begin") this.#homes.delete(island);
    else if (!isUndecidedAtHome(heard)) {
      // It answers, which a silent one did not. One that refused may do what it does here, and refuse again.
      if (kind !== "recover" && before === "silent") this.#homes.delete(island);
    } else if (isHome && heard === "silent") this.#homes.set(island, before ?? "silent");
    else if (isHome) this.#homes.set(island, "refused");
  }
}
