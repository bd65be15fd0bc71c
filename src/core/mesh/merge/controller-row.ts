// What one line says of one site: a row for each (controller id, line). A site registers itself in its own line, and others that it vouches
// for. Which of them is trusted is the registry's business; these rows are shown.

import type { LineId } from "../model.ts";
import { type LineEvent, siteOf, versionOf } from "./events.ts";
import { member, textOf, textsOf } from "./fields.ts";
import { NAME_LENGTH_MAX, URL_LENGTH_MAX, SITE_URLS_MAX } from "./limits.ts";
import { laterOf, type Said } from "./version.ts";

interface RegistrationSaid extends Said {
  readonly atMs: number;
  readonly name: string | null;
  readonly url: string | null;
  readonly urls: readonly string[];
  readonly version: string | null;
}

interface SignOfLife extends Said {
  readonly atMs: number;
  readonly isActive: boolean;
}

export interface ControllerRow {
  readonly id: string;
  readonly line: LineId;
  readonly registration: RegistrationSaid | null;
  readonly life: SignOfLife | null;
}

/** The row after the event; the same object where the event changes nothing. */
export function evolveControllerRow(row: ControllerRow | null, said: LineEvent): ControllerRow | null {
  const { event, line } = said;
  const before = row ?? { id: event.entityId, line, registration: null, life: null };
  const life = (isActive: boolean): SignOfLife => ({ at: versionOf(said), atMs: event.timestamp, isActive });
  switch (event.eventType) {
    case "controller:registered":
      return changed(row, before, registrationSaid(said), life(true));
    case "controller:heartbeat":
      return changed(row, before, null, life(true));
    case "controller:joined":
      return changed(row, before, null, life(true));
    case "controller:expired":
    case "controller:left":
      return changed(row, before, null, life(false));
    default:
      return row;
  }
}

/**
 * Of what several lines say of one site, what is shown: the site's own word; else of those who vouch for it the latest by (time, line), so
 * that every reader of the same rows shows the same one.
 */
export function shownController(rows: readonly ControllerRow[]): ControllerRow | null {
  let shown: ControllerRow | null = null;
  for (const row of rows) if (row.registration !== null && (shown === null || isBetter(row, shown))) shown = row;
  return shown;
}

function isBetter(row: ControllerRow, than: ControllerRow): boolean {
  const isOwn = siteOf(row.line) === row.id;
  if (isOwn !== (siteOf(than.line) === than.id)) return isOwn;
  const [mine, other] = [row.registration?.atMs ?? 0, than.registration?.atMs ?? 0];
  return mine === other ? row.line < than.line : mine > other;
}

function changed(
  row: ControllerRow | null,
  before: ControllerRow,
  registration: RegistrationSaid | null,
  life: SignOfLife,
): ControllerRow | null {
  const next = { registration: laterOf(before.registration, registration), life: laterOf(before.life, life) };
  return next.registration === before.registration && next.life === before.life ? row : { ...before, ...next };
}

function registrationSaid(said: LineEvent): RegistrationSaid {
  const { payload, timestamp } = said.event;
  const urls = textsOf(member(payload, "urls"), SITE_URLS_MAX, URL_LENGTH_MAX);
  return {
    at: versionOf(said),
    atMs: timestamp,
    name: textOf(member(payload, "name"), NAME_LENGTH_MAX),
    url: textOf(member(payload, "url"), URL_LENGTH_MAX) ?? urls[0] ?? null,
    urls,
    version: textOf(member(payload, "version"), NAME_LENGTH_MAX),
  };
}
