// The events of all sites: a lane for each site, where an event is a dot at its time by its own site's clock; the newest as a table; and one that
// is chosen, with its proof. What a site wrote while it was cut off appears in its lane when it is back, where it belongs.

import { signal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import { EVENT_TYPES } from "../../src/core/events/names.ts";
import { assertNever } from "../../src/contract/errors.ts";
import { HeldTable } from "./held-table.tsx";
import { SiteChoice } from "./mesh-jobs-view.tsx";
import { beginMs, type Feed, laneHint, type MeshEvent, WINDOW_MS_MAX } from "./event-feed.ts";
import { follow, type Verified, verify } from "./mesh-events.ts";
import { reader } from "./nodes.ts";
import { address, go, now } from "./page.ts";
import { Columns, Failed, Link } from "./parts.tsx";
import type { Site } from "./sites.ts";
import { type Placed, placed } from "./timeline.ts";
import { Typed } from "./typed.tsx";
import { ago, clockTime, count, fullTime, plural, type Tone } from "./words.ts";

const WINDOWS = [
  { name: "1 min", ms: 60_000 },
  { name: "5 min", ms: WINDOW_MS_MAX },
] as const;
const ROWS_MAX = 15;
const PAYLOAD_LETTERS_MAX = 45;

const chosen = signal<(typeof WINDOWS)[number]>(WINDOWS[0]);

export function MeshEvents({ sites }: { readonly sites: readonly Site[] }) {
  const { feed, stop } = useMemo(follow, []);
  useEffect(() => stop, []);
  const [opened, setOpened] = useState<MeshEvent | null>(null);
  const { events, after, error } = feed.value;
  return (
    <section aria-labelledby="mesh-events-title">
      <div class="row between">
        <h2 id="mesh-events-title">Events of all sites</h2>
        <div class="row" role="group" aria-label="How far back">
          {WINDOWS.map((one) => (
            <button
              key={one.name}
              type="button"
              class="quiet"
              aria-pressed={chosen.value === one}
              onClick={() => (chosen.value = one)}
            >
              {one.name}
            </button>
          ))}
        </div>
      </div>
      <Filters sites={sites} />
      <Failed error={error} />
      <Lanes sites={sites} feed={feed.value} open={setOpened} opened={opened} />
      <p class="hint">
        Each dot is an event at the time of its own site's clock.{" "}
        {after === null ? "Asking…" : `Live: ${count(after)} have arrived here.`}
      </p>
      <div aria-live="polite">
        {opened !== null && (
          <Opened key={`${reader.value} ${opened.arrival}`} event={opened} close={() => setOpened(null)} />
        )}
      </div>
      <HeldTable
        rows={events
          .slice(-ROWS_MAX)
          .toReversed()
          .map((event) => ({ ...event, id: String(event.arrival) }))}
        isStale={false}
        pageSize={ROWS_MAX}
        draw={(rows) => <Rows events={rows} open={setOpened} />}
      />
    </section>
  );
}

function Filters({ sites }: { readonly sites: readonly Site[] }) {
  const { site, type, entity } = address.value;
  return (
    <form class="filters" role="search" aria-label="Events of all sites" onSubmit={(event) => event.preventDefault()}>
      <label class="field">
        <span>Event</span>
        <select name="type" value={type} onChange={(event) => go({ type: event.currentTarget.value })}>
          <option value="">all</option>
          {[...EVENT_TYPES, "withheld"].map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <Typed name="entity" label="Job, agent or site" value={entity} />
      <SiteChoice sites={sites} />
      {(site !== "" || type !== "" || entity !== "") && (
        <button type="button" class="quiet" onClick={() => go({ site: "", type: "", entity: "", cursor: "" })}>
          Show all
        </button>
      )}
    </form>
  );
}

interface LanesProps {
  readonly sites: readonly Site[];
  readonly feed: Feed;
  readonly opened: MeshEvent | null;
  readonly open: (event: MeshEvent) => void;
}

function Lanes({ sites, feed, opened, open }: LanesProps) {
  const { events } = feed;
  const toMs = now.value;
  const fromMs = toMs - chosen.value.ms;
  const { site } = address.value;
  const known = new Set([...sites.map(({ id }) => id), ...events.map((event) => event.site)]);
  const unloaded = placed(fromMs, beginMs(feed) ?? fromMs, fromMs, toMs);
  const names = [...known].filter((id) => site === "" || id === site).toSorted();
  return (
    <div class="timeline" id="event-lanes">
      {names.map((name) => {
        const own = events.filter((event) => event.site === name);
        const last = own.at(-1);
        return (
          <div class="lane" key={name} data-site={name}>
            <span class="lane-name theirs" title={name}>
              {name}
            </span>
            <div class="track" role="img" aria-label={laneText(name, own, toMs)}>
              <NotLoaded place={unloaded} hasText={last !== undefined} />
              {own
                .filter(({ timestamp }) => timestamp >= fromMs)
                .map((event) => (
                  <Dot
                    key={event.arrival}
                    event={event}
                    left={Math.min(100, ((event.timestamp - fromMs) / (toMs - fromMs)) * 100)}
                    isOpen={opened?.arrival === event.arrival}
                    open={open}
                  />
                ))}
              {last === undefined && (
                <span class="lane-hint">
                  {laneHint(
                    sites.find(({ id }) => id === name),
                    feed,
                    toMs,
                  )}
                </span>
              )}
            </div>
          </div>
        );
      })}
      <div class="lane axis" aria-hidden="true">
        <span class="lane-name" />
        <div class="row between">
          <span>{clockTime(fromMs).slice(0, 8)}</span>
          <span>now</span>
        </div>
      </div>
    </div>
  );
}

/** In percent: narrower, there is no room for the words. */
const WORDS_WIDTH = 22;

/** The part of a lane that is older than the first event that is loaded. */
function NotLoaded({ place, hasText }: { readonly place: Placed | null; readonly hasText: boolean }) {
  if (place === null || place.width === 0) return null;
  const text = "earlier events are not loaded";
  return (
    <span class="not-known" style={{ left: 0, width: `${place.width}%` }} title={text}>
      {hasText && place.width > WORDS_WIDTH ? text : ""}
    </span>
  );
}

function laneText(name: string, events: readonly MeshEvent[], nowMs: number): string {
  const last = events.at(-1);
  if (last === undefined) return `${name}: no events are shown`;
  return `${name}: ${plural(events.length, "event")}, the last ${last.event_type} ${ago(last.timestamp, nowMs)}`;
}

interface DotProps {
  readonly event: MeshEvent;
  readonly left: number;
  readonly isOpen: boolean;
  readonly open: (event: MeshEvent) => void;
}

/** For the pointer; whoever uses the keyboard has the table. */
function Dot({ event, left, isOpen, open }: DotProps) {
  return (
    <button
      type="button"
      tabIndex={-1}
      aria-hidden="true"
      class={`dot ${toneOfEvent(event.event_type)} ${isOpen ? "open" : ""}`}
      style={{ left: `${left}%` }}
      title={`${event.event_type} ${event.entity_id}`}
      onClick={() => open(event)}
    />
  );
}

function toneOfEvent(type: string): Tone {
  const [, what = ""] = type.split(":");
  if (["completed", "registered", "resumed", "approved", "joined"].includes(what)) return "good";
  if (["failed", "offline", "forked", "evicted", "expired", "revoked"].includes(what)) return "bad";
  return ["assigned", "building", "cancelling"].includes(what) ? "busy" : "plain";
}

interface RowsProps {
  readonly events: readonly MeshEvent[];
  readonly open: (event: MeshEvent) => void;
}

function Rows({ events, open }: RowsProps) {
  if (events.length === 0) return <p class="hint empty">No event fits.</p>;
  return (
    <div class="scroll">
      <table id="mesh-events">
        <Columns names={["Arrival", "At", "Site", "Event", "Of", "Payload"]} hasActions />
        <tbody>
          {events.map((event) => {
            const text = JSON.stringify(event.payload);
            return (
              <tr key={event.arrival}>
                <td>{count(event.arrival)}</td>
                <td title={fullTime(event.timestamp)}>{clockTime(event.timestamp)}</td>
                <td>
                  <span class="theirs">{event.site}</span>
                </td>
                <td>{event.event_type}</td>
                <td>
                  <Link to={{ entity: event.entity_id }} class="id">
                    {event.entity_id}
                  </Link>
                </td>
                <td class="theirs about">
                  {text.length > PAYLOAD_LETTERS_MAX ? `${text.slice(0, PAYLOAD_LETTERS_MAX)}…` : text}
                </td>
                <td class="actions">
                  <button type="button" aria-label={`Verify event ${event.arrival}`} onClick={() => open(event)}>
                    Verify
                  </button>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

type Checked = { readonly kind: "checking" } | { readonly kind: "failed"; readonly why: string } | Verified;

/** An event that is opened is verified at once. */
function Opened({ event, close }: { readonly event: MeshEvent; readonly close: () => void }) {
  const [checked, setChecked] = useState<Checked>({ kind: "checking" });
  useEffect(() => {
    const over = new AbortController();
    verify(event, over.signal).then(
      (proof) => setChecked(proof),
      (error: unknown) => {
        if (!over.signal.aborted)
          setChecked({ kind: "failed", why: error instanceof Error ? error.message : String(error) });
      },
    );
    return () => over.abort();
  }, []);
  return (
    <div class="card" id="event-proof">
      <div class="row between">
        <h3>
          {event.event_type} of <span class="theirs">{event.entity_id}</span>
        </h3>
        <button type="button" class="quiet" onClick={close}>
          Close
        </button>
      </div>
      <ProofText checked={checked} />
      <dl class="facts">
        <dt>Place</dt>
        <dd>
          event {count(event.line_sequence)} of <span class="id">{event.line}</span>
        </dd>
        <dt>At</dt>
        <dd>{fullTime(event.timestamp)}</dd>
        <dt>Hash</dt>
        <dd class="id">{event.event_hash}</dd>
        <dt>Payload</dt>
        <dd class="theirs">{JSON.stringify(event.payload).slice(0, 2_000)}</dd>
      </dl>
    </div>
  );
}

function ProofText({ checked }: { readonly checked: Checked }) {
  switch (checked.kind) {
    case "checking":
      return <p class="hint">Asking for the proof…</p>;
    case "failed":
      return <p class="failed">Not verified: {checked.why}</p>;
    case "refuted":
      return <p class="failed">This is not what the site has signed: {checked.why}.</p>;
    case "proven": {
      const { hasText, hashes, checkpoint, signature } = checked;
      return (
        <p class="verified">
          Verified in this browser:{" "}
          {hasText
            ? "its bytes have this hash, they say what is shown here"
            : "its text did not leave its site; its hash alone"}
          , and {plural(hashes, "hash", "hashes")} lead from it to the root of the first {count(checkpoint.size)}{" "}
          events, which is in the checkpoint signed by <span class="theirs">{checkpoint.signer}</span>.{" "}
          {signature.kind === "valid"
            ? "Its Ed25519 signature was verified in this browser too, under the ring of keys that this site has for the line."
            : `The signature was not checked in this browser: ${signature.why}. This site checked it when it took the events.`}
        </p>
      );
    }
    default:
      return assertNever(checked, "proof");
  }
}
