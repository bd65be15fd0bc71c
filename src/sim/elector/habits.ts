// The ways in which a user runs an elector, each with what must come of it. A habit returns when the elector is free.

import { TenureError } from "../../core/kit/errors.ts";
import type { ScopeElector } from "../../electors/elector.ts";
import type { LeadOptions } from "../../ports/elector.ts";
import type { Oracle } from "./oracle.ts";
import type { TermExtras } from "./seat.ts";
import type { User } from "./user.ts";

interface Context {
  readonly elector: ScopeElector<TermExtras>;
  readonly user: User;
  readonly oracle: Oracle;
  readonly drainMs: number;
}

/** What a test aborts and throws with: nothing else may come back. */
const REASON = new Error("the user's own reason");

/** The backend was restored from an older state, as the elector says. */
export const REWOUND = "CLUSTER_MISMATCH";

/** Each returns how `lead` ended, as far as anybody has to know. */
export const HABITS = {
  /** Leads, and campaigns again after each loss, until the end of this life. */
  async stay(context) {
    const { user } = context;
    return await end(context, (term) => user.led(term, Infinity), {}, []);
  },

  async return(context) {
    const { user, oracle } = context;
    const outcome = await end(context, (term) => user.led(term, user.whileMs()), {}, []);
    if (outcome === "stopped") oracle.fail("user", "lead resolved with the outcome of a work whose term was over");
    oracle.reached("work-returned");
    return outcome;
  },

  async throw(context) {
    const { user, oracle } = context;
    const fails = async (term: Parameters<User["led"]>[0]): Promise<"done" | "stopped"> => {
      if ((await user.led(term, user.whileMs())) === "done") throw REASON;
      return "stopped";
    };
    const outcome = await end(context, fails, {}, [REASON]);
    oracle.reached("work-threw");
    return outcome;
  },

  /** Work that a database fails, twice: it runs again, in a higher epoch, and is given what it threw. */
  async retry(context) {
    const { user, oracle } = context;
    const thrown: { last?: TenureError | undefined; epoch: number; left: number } = { epoch: 0, left: 2 };
    const fails = async (term: Parameters<User["led"]>[0], lastError?: unknown): Promise<"done" | "stopped"> => {
      if (lastError !== thrown.last)
        oracle.fail("user", `a retry was given ${String(lastError)} instead of what it threw`);
      if (thrown.last !== undefined) oracle.reached("work-was-retried");
      if (thrown.last !== undefined && term.epoch <= thrown.epoch)
        oracle.fail("user", `work that failed in epoch ${thrown.epoch} was retried in epoch ${term.epoch}`);
      Object.assign(thrown, { last: undefined, epoch: term.epoch });
      const outcome = await user.led(term, user.whileMs());
      if (outcome === "stopped" || thrown.left-- === 0) return outcome;
      throw (thrown.last = new TenureError("OUTCOME_UNKNOWN", "planted by the simulator"));
    };
    return await end(context, fails, { onError: "retry" }, []);
  },

  /** Stops while it may still be campaigning. */
  async "give-up"(context) {
    const { user, oracle, elector } = context;
    const stop = new AbortController();
    user.after(user.random.between(0, 500), () => {
      if (elector.stats().acquiredTotal === 0) oracle.reached("campaign-abandoned");
      stop.abort(REASON);
    });
    return await end(context, (term) => user.led(term, Infinity), { signal: stop.signal }, [REASON]);
  },

  /** Stops in the middle of a term, and needs a while to wind up. */
  async stop(context) {
    const { user, drainMs } = context;
    const stop = new AbortController();
    user.after(user.whileMs(), () => stop.abort(REASON));
    return await end(context, (term) => user.led(term, Infinity, drainMs * 0.7), { signal: stop.signal }, [REASON]);
  },

  /** Work that goes on for a while after each loss. */
  async linger(context) {
    const { user, drainMs } = context;
    return await end(context, (term) => user.led(term, user.whileMs() * 2, drainMs * 0.7), {}, []);
  },

  /** Work that does not stop in time: the elector stays occupied until it does. */
  async overrun(context) {
    const { user, oracle, elector, drainMs } = context;
    const stop = new AbortController();
    let settled: Promise<unknown> = Promise.resolve();
    let running = false;
    user.after(user.whileMs(), () => stop.abort(REASON));
    const work = (term: Parameters<User["led"]>[0]): Promise<"done" | "stopped"> => {
      running = true;
      const outcome = user.led(term, Infinity, drainMs * 1.5);
      settled = outcome.then(() => {
        running = false;
      });
      return outcome;
    };
    const error = await end(context, work, { signal: stop.signal }, ["TERM_OVERRUN", REASON]);
    // Letting go takes a while too, and the work may have settled in it.
    if (error === "TERM_OVERRUN" && running) {
      oracle.reached("term-overrun");
      await elector
        .lead(() => "done")
        .then(
          () => oracle.fail("user", "an elector led while the work of its last term went on"),
          (busy: unknown) => expected(context, busy, ["ELECTOR_BUSY"]),
        );
    }
    await settled;
    await user.sleep(0);
    return error;
  },

  async lose(context) {
    const { user, oracle } = context;
    const error = await end(context, (term) => user.led(term, user.whileMs() * 3), { onLost: "throw" }, ["NOT_LEADER"]);
    if (error === "NOT_LEADER") oracle.reached("lost-was-thrown");
    return error;
  },

  async close(context) {
    const { user, oracle, elector } = context;
    user.after(user.whileMs(), () => {
      if (elector.gate.isLeader) oracle.reached("closed-while-leading");
      void elector.close();
    });
    return await end(context, (term) => user.led(term, Infinity), {}, []);
  },

  async "by-hand"(context) {
    const { user, oracle, elector } = context;
    const stop = new AbortController();
    user.after(user.whileMs() * 3, () => stop.abort(REASON));
    try {
      const term = await elector.acquire({ signal: stop.signal });
      oracle.reached("acquired-by-hand");
      await user.work(term, user.whileMs());
      await term.resign();
      if (!term.signal.aborted) oracle.fail("user", "a term is over and its signal has not aborted");
      await term.ended;
      return "resigned";
    } catch (error) {
      return expected(context, error, [REASON]);
    }
  },
} satisfies Record<string, (context: Context) => Promise<unknown>>;
export type Habit = keyof typeof HABITS;

/** Runs `lead` to its end; whatever it rejects with must be one of these. */
async function end(
  context: Context,
  work: (term: Parameters<User["led"]>[0], lastError?: unknown) => Promise<"done" | "stopped">,
  options: LeadOptions,
  errors: readonly unknown[],
): Promise<unknown> {
  const { elector, drainMs } = context;
  try {
    return await elector.lead(work, { drainMs, ...options });
  } catch (error) {
    return expected(context, error, errors);
  }
}

/** A closed elector rejects everything, and so does one whose server was restored. */
function expected({ oracle }: Context, error: unknown, errors: readonly unknown[]): unknown {
  const seen = TenureError.is(error) ? error.code : error;
  if (seen === REWOUND && oracle.wasRestored) {
    oracle.reached("epochs-that-went-back-were-refused");
    return seen;
  }
  if (seen !== "ELECTOR_CLOSED" && !errors.includes(seen))
    oracle.fail("user", `an elector rejected with ${String(error)}`);
  return seen;
}
