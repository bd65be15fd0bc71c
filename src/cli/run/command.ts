// `tenure run`: the composition root. It puts flags, backend, elector, signals and messages together; what happens is
// in session.ts (the campaign and its terms), guarded.ts (one command and its guard) and guard.ts.

import { RUN } from "./help.ts";
import { createElector } from "../../entry/index.ts";
import { trustMs } from "../../core/trust/window.ts";
import type { Elector, EndReason, Transition } from "../../ports/elector.ts";
import { backendFrom } from "../connection/backend.ts";
import { UsageError } from "../kit/flags.ts";
import { guardPlan, readRunFlags } from "./flags.ts";
import { ASK_WHO_AFTER_MS, CLOSE_MS_MAX } from "./limits.ts";
import { Notices } from "./notices.ts";
import { RunSession } from "./session.ts";
import { printed } from "../kit/print.ts";

const SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"] as const;

export async function run(args: readonly string[]): Promise<number> {
  const flags = readRunFlags(args, process.env);
  if (flags === "help") return printed(RUN.help);
  // Without groups and signals there is no guard, and without a guard nothing is promised.
  if (process.platform === "win32")
    throw new UsageError("needs process groups and signals, which Windows does not have");
  const { scope, quiet, json, identity, enabled } = flags;
  const notices = new Notices({ scope, quiet, json, write: (line) => process.stderr.write(line) });
  const backend = await backendFrom(flags.backend, process.env);
  const plan = guardPlan(flags, backend.timing);
  const teller = new Teller(notices);
  const elector: Elector = createElector({
    scope,
    backend,
    identity,
    enabled,
    logger: notices.logger(),
    onTransition: (transition) => teller.tell(transition, elector),
  });
  const session = new RunSession({
    flags,
    plan,
    trustMs: trustMs(backend.timing),
    elector,
    notices,
    environment: process.env,
    exitNow: (code) => process.exit(code),
  });
  // Whoever read our messages may be gone; that is no reason to end the command.
  process.stderr.on("error", () => undefined);
  for (const signal of SIGNALS) process.on(signal, () => session.signalled(signal));
  if (!enabled) teller.follow(elector);
  try {
    return await session.run();
  } finally {
    teller.end();
    await closed(elector, notices);
  }
}

/** Whatever goes wrong here, the outcome is known already. */
async function closed(elector: Elector, notices: Notices): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, CLOSE_MS_MAX);
  try {
    await Promise.race([promise, elector.close()]);
  } catch (error) {
    notices.say("warning", `the scope could not be released in order: ${(error as Error).message}`);
  } finally {
    clearTimeout(timer);
  }
}

const WHY: Readonly<Record<EndReason, string>> = {
  resigned: "released",
  asked: "an operator asked for it (tenure scope resign)",
  expired: "it was not proven for the whole server timeout",
  "session-ended": "the session with the backend ended",
  superseded: "another epoch is in force",
  "read-only": "the server is a standby now",
  "lease-gone": "the server says that the lease ended",
  unlocked: "the session does not hold the lock any more",
};

/** Says who leads while we wait, and why a term ended. */
class Teller {
  readonly #notices: Notices;
  #watching: AbortController | undefined;

  constructor(notices: Notices) {
    this.#notices = notices;
  }

  tell(transition: Transition, elector: Elector): void {
    if (transition.kind === "campaigning") return this.#watchSoon(elector);
    this.#watching?.abort();
    if (transition.kind === "ended" && transition.reason !== "resigned") {
      const { epoch, reason } = transition;
      this.#notices.say("lost", `epoch ${epoch}: ${WHY[reason]}`, { epoch, reason });
    } else if (transition.kind === "suspended") {
      const { epoch } = transition;
      this.#notices.say("suspended", `epoch ${epoch}: no heartbeat was answered in time`, { epoch });
    }
  }

  /** A permanent follower never campaigns. */
  follow(elector: Elector): void {
    this.#notices.say("waiting", "TENURE_LEADER_ENABLED=false: this instance never leads");
    this.#watchSoon(elector);
  }

  end(): void {
    this.#watching?.abort();
  }

  #watchSoon(elector: Elector): void {
    this.#watching?.abort();
    const watching = new AbortController();
    this.#watching = watching;
    const timer = setTimeout(() => void this.#watch(elector, watching.signal), ASK_WHO_AFTER_MS);
    watching.signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  }

  async #watch(elector: Elector, signal: AbortSignal): Promise<void> {
    try {
      for await (const leader of elector.observe({ signal })) {
        if (signal.aborted) return;
        if (leader === null || leader.identity === elector.identity) continue;
        const { identity, epoch } = leader;
        this.#notices.say("waiting", `${identity} leads "${elector.scope}" in epoch ${epoch}`, {
          leader: identity,
          epoch,
        });
      }
    } catch (error) {
      // Nothing depends on it: whoever leads is only told to people.
      if (!signal.aborted) this.#notices.say("warning", `can't say who leads: ${(error as Error).message}`);
    }
  }
}
