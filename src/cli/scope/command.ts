// `tenure scope list|show|watch|history|resign`: what an operator asks about leadership. It needs the operator's rights
// of docs/reference/permissions.md, and creates nothing: a missing schema is reported, not installed.

import { SCOPE } from "./help.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { assertNever } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { urlDriver } from "../../drivers/postgres/index.ts";
import { systemClock } from "../../drivers/system/clock.ts";
import { PostgresAdmin } from "../../electors/postgres/admin.ts";
import { settingsOf } from "../../electors/postgres/index.ts";
import { etcd } from "../../entry/etcd.ts";
import { createElector } from "../../entry/index.ts";
import { servers } from "../../entry/servers.ts";
import type { ScopeAdmin, ScopeRecord } from "../../ports/backends/scope-admin.ts";
import { backendFrom, backendSource } from "../connection/backend.ts";
import { suggestion } from "../kit/flags.ts";
import { duration, isoTime, json, printable } from "../kit/output.ts";
import { readScopeFlags, type ScopeFlags } from "./flags.ts";
import {
  detailsObject,
  detailsTable,
  type Moment,
  scopeObject,
  scopeTable,
  transitionObject,
  transitionTable,
} from "./view.ts";
import { untilSignal } from "../kit/until-signal.ts";
import { NAMES_LISTED_MAX, SCOPE_POLL_MS } from "../limits.ts";
import { printed, stdoutPaint } from "../kit/print.ts";

const EXIT_NO_SCOPE = 66;
const EXIT_STILL_LEADS = 75;

interface Desk {
  readonly admin: ScopeAdmin;
  readonly staleAfterMs: number;
}

export async function scope(args: readonly string[]): Promise<number> {
  const flags = readScopeFlags(args, process.env);
  if (flags === "help") return printed(SCOPE.help);
  const desk = openDesk(flags.backend);
  try {
    return await answer(desk, flags);
  } finally {
    await desk.admin.close();
  }
}

function openDesk(url: string): Desk {
  const source = backendSource(url, process.env);
  if (source.kind === "etcd") {
    const backend = etcd(source.options);
    return { admin: backend.admin(), staleAfterMs: backend.timing.serverTimeoutMs };
  }
  if (source.kind === "servers") {
    const backend = servers(source.urls, source.options);
    return { admin: backend.admin(), staleAfterMs: backend.timing.serverTimeoutMs };
  }
  const { schema, timing } = settingsOf(source.options);
  const admin = new PostgresAdmin(urlDriver(source.options.url, "tenure admin"), schema, systemClock);
  return { admin, staleAfterMs: timing.serverTimeoutMs };
}

async function answer(desk: Desk, flags: ScopeFlags): Promise<number> {
  const asJson = flags.output === "json";
  const momentNow = (): Moment => ({ nowMs: systemClock.wallMs(), staleAfterMs: desk.staleAfterMs });
  if (flags.verb === "list") {
    const records = await desk.admin.list();
    const moment = momentNow();
    const scopes = records.map((record) => scopeObject(record, moment));
    return printed(asJson ? json({ scopes }) : scopeTable(records, moment, stdoutPaint()));
  }
  const record = await desk.admin.find(flags.scope);
  if (record === null) return unknownScope(flags.scope, await desk.admin.list());
  const moment = momentNow();
  switch (flags.verb) {
    case "show": {
      const details = (await desk.admin.details?.(record.scope)) ?? null;
      const view = asJson ? json(detailsObject(record, details, moment)) : detailsTable(record, details, moment);
      return printed(view);
    }
    case "history": {
      const transitions = await desk.admin.history(record.scope);
      const object = { scope: record.scope, transitions: transitions.map(transitionObject) };
      return printed(asJson ? json(object) : transitionTable(transitions, stdoutPaint()));
    }
    case "watch":
      return await watch(flags);
    case "resign":
      return await resign(desk, flags, record);
    default:
      return assertNever(flags.verb, "scope");
  }
}

function unknownScope(name: string, records: readonly ScopeRecord[]): number {
  const names = records.map((record) => record.scope);
  const listed = names.slice(0, NAMES_LISTED_MAX).map((one) => JSON.stringify(one));
  const more = names.length > listed.length ? ` and ${names.length - listed.length} more (tenure scope list)` : "";
  const known = names.length === 0 ? "Nobody has led anything here yet" : `There are: ${listed.join(", ")}${more}`;
  const near = suggestion(name, names);
  process.stderr.write(
    `tenure: nobody has ever led a scope ${JSON.stringify(name)} here${near}${near === "" ? "." : ""} ${known}.\n`,
  );
  return EXIT_NO_SCOPE;
}

/** Pushed by the backend, not polled; the elector never campaigns, it only observes. */
async function watch({ backend: url, scope: name, output }: ScopeFlags): Promise<number> {
  const backend = await backendFrom(url, process.env);
  const logger = { info: () => undefined, warn: complain, error: complain };
  const elector = createElector({ scope: name, backend, logger, enabled: false });
  const end = untilSignal();
  try {
    for await (const leader of elector.observe({ signal: end.signal })) {
      const at = isoTime(systemClock.wallMs());
      const state = leader === null ? "free" : "held";
      const { epoch = null, identity = null } = leader ?? {};
      const text = leader === null ? "nobody leads" : `epoch ${epoch}  ${printable(leader.identity)}`;
      process.stdout.write(output === "json" ? json({ at, scope: name, state, epoch, identity }) : `${at}  ${text}\n`);
    }
  } catch (error) {
    if (!end.signal.aborted) throw error;
  } finally {
    await elector.close();
  }
  return end.code;
}

function complain(_fields: unknown, message: string): void {
  process.stderr.write(`tenure: ${message.replaceAll(/\s*\n\s*/g, " ")}\n`);
}

interface Resignation {
  readonly outcome: "nobody-leads" | "stepped-down" | "still-leads";
  readonly epoch: number | null;
  readonly waitedMs: number;
  /** Who leads now. */
  readonly leader: ScopeRecord | null;
}

async function resign(desk: Desk, flags: ScopeFlags, before: ScopeRecord): Promise<number> {
  const { outcome, epoch, waitedMs, leader } = await stepDown(desk.admin, flags);
  const object = {
    scope: flags.scope,
    outcome,
    epoch,
    identity: epoch === before.epoch ? before.identity : null,
    forced: flags.force,
    waited_ms: Math.round(waitedMs),
    leader: leader === null ? null : { epoch: leader.epoch, identity: leader.identity },
  };
  process.stdout.write(flags.output === "json" ? json(object) : resignationText(object));
  return outcome === "still-leads" ? EXIT_STILL_LEADS : 0;
}

async function stepDown(admin: ScopeAdmin, { scope: name, force, waitMs }: ScopeFlags): Promise<Resignation> {
  const startedMs = systemClock.monotonicMs();
  const asked = await admin.askResign(name, force);
  if (asked === null) return { outcome: "nobody-leads", epoch: null, waitedMs: 0, leader: null };
  for (;;) {
    const now = await look(admin, name);
    const waitedMs = systemClock.monotonicMs() - startedMs;
    const led = now !== "no answer" && now !== null && now.identity !== null && now.isGone !== true;
    const leader = led ? now : null;
    const isOver = now !== "no answer" && (leader === null || leader.epoch > asked.epoch);
    if (isOver) return { outcome: "stepped-down", epoch: asked.epoch, waitedMs, leader };
    if (waitedMs >= waitMs) return { outcome: "still-leads", epoch: asked.epoch, waitedMs, leader };
    await sleep(Math.min(SCOPE_POLL_MS, Math.max(1, waitMs - waitedMs)));
  }
}

/** It may be restarting when it does not answer, and the wish stands. */
async function look(admin: ScopeAdmin, name: string): Promise<ScopeRecord | null | "no answer"> {
  try {
    return await admin.find(name);
  } catch (error) {
    if (TenureError.is(error) && error.retryable) return "no answer";
    throw error;
  }
}

function resignationText(object: {
  readonly scope: string;
  readonly outcome: Resignation["outcome"];
  readonly epoch: number | null;
  readonly forced: boolean;
  readonly waited_ms: number;
  readonly leader: { readonly epoch: number; readonly identity: string | null } | null;
}): string {
  const name = JSON.stringify(printable(object.scope));
  const { epoch, leader } = object;
  const next =
    leader === null ? "nobody leads now" : `${printable(leader.identity ?? "?")} leads in epoch ${leader.epoch}`;
  const after = duration(object.waited_ms);
  switch (object.outcome) {
    case "nobody-leads":
      return `nobody leads ${name}; there is nothing to do\n`;
    case "stepped-down":
      return `epoch ${epoch} of ${name} is over after ${after}; ${next}\n`;
    case "still-leads":
      return object.forced
        ? `epoch ${epoch} of ${name} is still in force after ${after}, although its session was told to end; see tenure scope show\n`
        : `epoch ${epoch} of ${name} was asked to end and is still in force after ${after}; its leader may be frozen. The wish stands. To take the scope away: tenure scope resign --force\n`;
    default:
      return assertNever(object.outcome, "resign");
  }
}
