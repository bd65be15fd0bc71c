// The Postgres backend: what `postgres()` gives. It connects nothing before a seat asks, and closes what its seats
// share (the polling session, the observer, the clients lent to `term.tx`) when the last of them has left.

import type { Backend, Claim, Hold, Seat } from "../../ports/backends/backend.ts";
import type { SqlDriver } from "../../ports/backends/sql.ts";
import { Admission } from "../../postgres/admission.ts";
import { BlockHolder } from "./seats/block.ts";
import type { Holder, Scoped } from "./seats/holder.ts";
import type { PostgresSettings } from "./options.ts";
import { PollHub } from "./seats/poll-hub.ts";
import { PollHolder } from "./seats/poll.ts";
import { statements } from "../../postgres/schema/schema.ts";
import { PostgresSeat } from "./seats/seat.ts";
import { Observer } from "./watch.ts";

/** What comes from outside this room. */
export interface PostgresWorld<Extras extends object> {
  readonly driver: SqlDriver;
  /** `<host>-<pid>`. */
  readonly host: string;
  readonly lockKeyOf: (scope: string) => bigint;
  /** The fence of a term. */
  readonly extras: (hold: Hold) => Extras;
  /** Closes the clients that fences used; they may open again. */
  readonly idle: () => Promise<void>;
}

/** From the first seat to the last. */
interface Shared {
  readonly hub: PollHub;
  readonly observer: Observer;
  seats: number;
}

export class PostgresBackend<Extras extends object> implements Backend<Extras> {
  readonly kind = "postgres";
  readonly host: string;
  readonly timing: PostgresSettings["timing"];
  readonly #settings: PostgresSettings;
  readonly #world: PostgresWorld<Extras>;
  readonly #admission: Admission;
  readonly #sql: Scoped["sql"];
  #shared: Shared | undefined;

  constructor(settings: PostgresSettings, world: PostgresWorld<Extras>) {
    this.host = world.host;
    this.timing = settings.timing;
    this.#settings = settings;
    this.#world = world;
    this.#admission = new Admission(world.driver, settings);
    this.#sql = statements(settings.schema);
  }

  seat(claim: Claim): Seat<Extras> {
    const { driver, lockKeyOf, extras } = this.#world;
    const shared = this.#enter(claim);
    const key = lockKeyOf(claim.scope).toString();
    const scoped: Scoped = { claim, key, where: driver.where, settings: this.#settings, sql: this.#sql };
    const holder: Holder =
      this.#settings.wait === "poll"
        ? new PollHolder(scoped, shared.hub)
        : new BlockHolder(scoped, driver, this.#admission);
    return new PostgresSeat({ scoped, holder, observer: shared.observer, extras, left: () => this.#leave(shared) });
  }

  #enter({ clock, random, logger }: Claim): Shared {
    const { driver } = this.#world;
    const settings = this.#settings;
    this.#shared ??= {
      hub: new PollHub({ driver, admission: this.#admission, settings }, clock, random.fork("poll")),
      observer: new Observer({ driver, settings, clock, random: random.fork("watch"), logger }),
      seats: 0,
    };
    this.#shared.seats++;
    return this.#shared;
  }

  async #leave(shared: Shared): Promise<void> {
    shared.seats--;
    if (shared.seats > 0) return;
    if (this.#shared === shared) this.#shared = undefined;
    shared.observer.close();
    await Promise.all([shared.hub.close(), this.#world.idle()]);
  }
}
