// The events as a drawer at the bottom, over whichever view is open, and whether every node's copy of their history is whole.

import { signal } from "@preact/signals";
import type { EventView } from "../../src/client/index.ts";
import { assertNever } from "../../src/contract/errors.ts";
import { perSecond, recent, seen, streamState } from "./events.ts";
import { nodes } from "./nodes.ts";
import { Columns, Link } from "./parts.tsx";
import { readAt } from "./request.ts";
import { clockTime, count, fullTime } from "./words.ts";

const ROWS_MAX = 60;
/** A node reads all that it has. */
const VERIFY_LIMIT_MS = 600_000;
const PAYLOAD_LETTERS_MAX = 160;

export const isDrawerOpen = signal(false);

type Verdict =
  | { readonly state: "checking" }
  | { readonly state: "whole"; readonly through: number; readonly root: string }
  | { readonly state: "broken"; readonly at: number; readonly reason: string }
  | { readonly state: "failed"; readonly why: string };

const verdicts = signal<ReadonlyMap<string, Verdict>>(new Map());

async function verify(url: string, nodeId: string): Promise<void> {
  const put = (verdict: Verdict): void => {
    verdicts.value = new Map([...verdicts.value, [nodeId, verdict]]);
  };
  put({ state: "checking" });
  try {
    const body = await readAt<Readonly<Record<string, unknown>>>(url, "/api/events/verify", VERIFY_LIMIT_MS);
    if (body["valid"] === true)
      put({ state: "whole", through: Number(body["throughSequence"]), root: String(body["root"]) });
    else if (body["valid"] === false)
      put({ state: "broken", at: Number(body["firstBrokenSequence"]), reason: String(body["reason"]) });
    else
      put({ state: "failed", why: typeof body["message"] === "string" ? body["message"] : "the node gave no verdict" });
  } catch (error) {
    put({ state: "failed", why: error instanceof Error ? error.message : String(error) });
  }
}

function verifyAll(): void {
  verdicts.value = new Map();
  for (const { url, nodeId, isReached } of nodes.peek()) if (isReached) void verify(url, nodeId ?? url);
}

export function EventsDrawer() {
  const isOpen = isDrawerOpen.value;
  return (
    <aside class={`drawer ${isOpen ? "open" : ""}`} aria-label="Events">
      <div class="row between">
        <button
          type="button"
          class="quiet"
          aria-expanded={isOpen}
          aria-controls="events"
          onClick={() => (isDrawerOpen.value = !isOpen)}
        >
          Events {isOpen ? "▾" : "▴"}
        </button>
        <span class="hint">
          {streamState.value === "live"
            ? `live, ${count(perSecond.value)} a second, ${count(seen.value)} seen`
            : "opening the stream…"}
        </span>
        <span class="row">
          <Verdicts />
          <button type="button" onClick={verifyAll}>
            Verify
          </button>
        </span>
      </div>
      <div
        id="events"
        hidden={!isOpen}
        class="scroll"
        tabIndex={isOpen ? 0 : -1}
        role="region"
        aria-label="The last events"
      >
        {isOpen && <Rows />}
      </div>
    </aside>
  );
}

function Verdicts() {
  return (
    <span id="verdicts" role="status" aria-live="polite">
      {verdicts.value.size === 0 ? (
        <span class="hint">not verified</span>
      ) : (
        [...verdicts.value].map(([nodeId, verdict]) => (
          <span key={nodeId} class={`verdict ${verdict.state}`} title={titleOf(verdict)}>
            <span class="theirs">{nodeId}</span>: {verdictText(verdict)}
          </span>
        ))
      )}
    </span>
  );
}

function verdictText(verdict: Verdict): string {
  switch (verdict.state) {
    case "checking":
      return "checking…";
    case "whole":
      return `whole through ${count(verdict.through)}`;
    case "broken":
      return `broken at ${count(verdict.at)}`;
    case "failed":
      return "could not be checked";
    default:
      return assertNever(verdict, "verdict");
  }
}

function titleOf(verdict: Verdict): string {
  if (verdict.state === "whole") return `root ${verdict.root}`;
  if (verdict.state === "broken") return verdict.reason;
  return verdict.state === "failed" ? verdict.why : "";
}

function Rows() {
  const events = recent.value.slice(-ROWS_MAX).toReversed();
  if (events.length === 0) return <p class="hint empty">Nothing has happened yet.</p>;
  return (
    <table>
      <Columns names={["Sequence", "At", "Event", "Of", "Leader epoch", "Payload", "Hash"]} />
      <tbody>
        {events.map((event) => (
          <EventRow key={event.sequence} event={event} />
        ))}
      </tbody>
    </table>
  );
}

function EventRow({ event }: { readonly event: EventView }) {
  const { sequence, timestamp, eventType, entityId, entityType, leaderEpoch, payload, eventHash } = event;
  const text = JSON.stringify(payload);
  return (
    <tr>
      <td>{count(sequence)}</td>
      <td title={fullTime(timestamp)}>{clockTime(timestamp)}</td>
      <td>{eventType}</td>
      <td class="theirs">
        {entityType === "build" ? (
          <Link to={{ view: "jobs", job: entityId }} class="id">
            {entityId}
          </Link>
        ) : (
          entityId
        )}
      </td>
      <td>{leaderEpoch}</td>
      <td class="theirs about" title={text.slice(0, 2_000)}>
        {text.length > PAYLOAD_LETTERS_MAX ? `${text.slice(0, PAYLOAD_LETTERS_MAX)}…` : text}
      </td>
      <td class="id" title={eventHash}>
        {eventHash.slice(0, 12)}
      </td>
    </tr>
  );
}
