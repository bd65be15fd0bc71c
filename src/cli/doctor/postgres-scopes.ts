// The doctor's judgement over scopes: their keys, who has their locks, who holds their fences, and who leads. Pure.

import { FENCED_MS_LONG } from "./limits.ts";
import type { Occupant, ScopeFacts } from "./postgres.ts";
import { quoteText } from "./postgres.ts";
import { type Check, ok, problem, type Remedy, warning } from "./report.ts";
import { sessionText } from "../scope/view.ts";
import { duration } from "../kit/output.ts";

/** What every session of ours is called (postgres/ready.ts). */
const OURS = /^tenure\b/;

export function judgeScopes(scopes: readonly ScopeFacts[], asked: string | undefined, staleAfterMs: number): Check[] {
  if (scopes.length === 0) return [ok("scopes", "none is stored yet")];
  const rows = [keys(scopes, asked), foreigners(scopes), fences(scopes)];
  const only = scopes.find((one) => one.scope === asked);
  return [...rows, leaders(only === undefined ? scopes : [only], only !== undefined, staleAfterMs)];
}

function keys(scopes: readonly ScopeFacts[], asked: string | undefined): Check {
  const clash = scopes.find(
    (one) => one.keyBelongsTo !== null && one.keyBelongsTo !== one.scope && one.scope === asked,
  );
  if (clash !== undefined) {
    return problem(
      "lock keys",
      `key ${clash.expectedKey} of scope ${name(clash)} belongs to scope ${JSON.stringify(clash.keyBelongsTo)}`,
      {
        means: "campaigns for it are refused (SCOPE_CLASH): two scopes with one key would shut each other out",
        advice: "Rename the scope, or give it a key of its own on all its instances (lockKey, TENURE_LEADER_LOCK_KEY).",
      },
    );
  }
  const other = scopes.filter((one) => one.storedKey !== null && one.storedKey !== one.expectedKey);
  if (other.length === 0) return ok("lock keys", `${scopes.length} scope${scopes.length === 1 ? "" : "s"}, no clash`);
  const seen = other.map(
    (one) => `scope ${name(one)} is stored with key ${one.storedKey}, and ours would be ${one.expectedKey}`,
  );
  const remedy: Remedy = {
    means: "somebody set a lock key; an instance without the same one is refused (SCOPE_CLASH)",
    advice: `Give every instance of it the stored key: ${other.map((one) => `TENURE_LEADER_LOCK_KEY=${one.storedKey}`).join("; ")}`,
  };
  return other.some((one) => one.scope === asked)
    ? problem("lock keys", seen.join("; "), remedy)
    : warning("lock keys", seen.join("; "), remedy);
}

function foreigners(scopes: readonly ScopeFacts[]): Check {
  const found = scopes.flatMap((one) =>
    one.lockHolders.filter((holder) => !isOurs(holder)).map((holder) => ({ scope: one, holder })),
  );
  if (found.length === 0) return ok("lock holders", "no session but Tenure's own has a lock of a scope");
  return problem(
    "lock holders",
    found.map(({ scope, holder }) => `the lock of scope ${name(scope)} is with ${occupant(holder)}`).join("; "),
    {
      means: "it is no session of Tenure, and nobody can lead while it has the lock",
      advice:
        "Find out what it is: another program that uses the same advisory lock key, or a hand in psql. To end it:",
      sql: found.map(({ holder }) => end(holder)),
    },
  );
}

function fences(scopes: readonly ScopeFacts[]): Check {
  const held = scopes.flatMap((one) => one.fenceHolders.map((holder) => ({ scope: one, holder })));
  const prepared = held.filter(({ holder }) => holder.pid === null);
  const long = held.filter(({ holder }) => holder.pid !== null && (holder.ageMs ?? 0) > FENCED_MS_LONG);
  const text = (list: typeof held): string =>
    list.map(({ scope, holder }) => `the fence of scope ${name(scope)} is held by ${occupant(holder)}`).join("; ");
  if (prepared.length > 0) {
    return problem("fences", text([...prepared, ...long]), {
      means:
        "a prepared transaction keeps a fence and can't be ended by the next leader: it waits until somebody decides",
      advice: "Commit it if its work must count (commit prepared …), else:",
      sql: [...prepared, ...long].map(({ holder }) => end(holder)),
    });
  }
  if (long.length === 0)
    return ok("fences", `${held.length} fenced transaction${held.length === 1 ? "" : "s"} under way`);
  return warning("fences", text(long), {
    means: "the next leader ends it, and its work is rolled back; if it may not, it waits",
    advice: "Let it finish, or:",
    sql: long.map(({ holder }) => end(holder)),
  });
}

function leaders(scopes: readonly ScopeFacts[], isAsked: boolean, staleAfterMs: number): Check {
  const isLate = (one: ScopeFacts): boolean => one.heartbeatAgeMs !== null && one.heartbeatAgeMs > staleAfterMs;
  const led = scopes.filter((one) => one.holder !== null);
  const stale = led.filter((one) => !one.isHeld || isLate(one));
  if (stale.length > 0) {
    const seen = stale.map((one) => {
      const age = one.heartbeatAgeMs === null ? "" : `, last heartbeat ${duration(one.heartbeatAgeMs)} ago`;
      return `${name(one)}: ${one.isHeld ? "its leader is silent" : "its leader is gone, and nobody has followed"}${age}`;
    });
    return warning("leaders", seen.join("; "), {
      means: "nobody acts for it now",
      advice: "Are instances running, and can they reach this database? See docs/runbooks/nobody-leads.md",
    });
  }
  if (isAsked && led.length === 0) {
    return warning("leaders", `nobody leads ${scopes.map(name).join(", ")}`, {
      means: "nobody acts for it now",
      advice: "Are instances running, and can they reach this database? See docs/runbooks/nobody-leads.md",
    });
  }
  return ok("leaders", `${led.length} of ${scopes.length} scope${scopes.length === 1 ? "" : "s"} led`);
}

function isOurs({ applicationName }: Occupant): boolean {
  return applicationName !== null && OURS.test(applicationName);
}

function occupant(holder: Occupant): string {
  return `${sessionText(holder)}${holder.ageMs === null ? "" : `, for ${duration(holder.ageMs)}`}`;
}

function end({ pid, prepared }: Occupant): string {
  return pid === null ? `rollback prepared ${quoteText(prepared ?? "")};` : `select pg_terminate_backend(${pid});`;
}

function name({ scope }: ScopeFacts): string {
  return JSON.stringify(scope);
}
