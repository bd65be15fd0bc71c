// The events as a drawer at the bottom, over whichever view is open, and whether every node's copy of their history is whole.

import { signal } from "@preact/signals";
import type { EventView } from "../../src/client/index.ts";
import { assertNever } from "../../src/contract/errors.ts";
import { perSecond, recent, seen, streamState } from "./events.ts";
import { type Comparison, compareHistories, type WholeHistory } from "./histories.ts";
import { cluster, nodes, reader } from "./nodes.ts";
import { Columns, Link } from "./parts.tsx";
import { copiesOf } from "./reach.ts";
import { READ_LIMIT_MS, readAt } from "./request.ts";
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

/** Of the copies with each other; null: not yet, or there are no two. */
const comparison = signal<Comparison | null>(null);
const isVerifying = signal(false);
reader.subscribe(() => {
  verdicts.value = new Map();
  comparison.value = null;
});

type Body = Readonly<Record<string, unknown>>;

async function verdictOf(url: string | null): Promise<Verdict> {
  if (url === null) return { state: "failed", why: "this page does not reach it" };
  try {
    const body = await readAt<Body>(url, "/api/events/verify", VERIFY_LIMIT_MS);
    if (body["valid"] === true)
      return { state: "whole", through: Number(body["throughSequence"]), root: String(body["root"]) };
    if (body["valid"] === false)
      return { state: "broken", at: Number(body["firstBrokenSequence"]), reason: String(body["reason"]) };
    return { state: "failed", why: typeof body["message"] === "string" ? body["message"] : "the node gave no verdict" };
  } catch (error) {
    return { state: "failed", why: error instanceof Error ? error.message : String(error) };
  }
}

async function rootAt(url: string, size: number): Promise<string> {
  const { fromRoot } = await readAt<Body>(url, `/v1/events/proof?from_size=${size}`, READ_LIMIT_MS);
  if (typeof fromRoot !== "string") throw new Error("the node tells no root");
  return fromRoot;
}

async function verifyAll(): Promise<void> {
  if (isVerifying.value) return;
  isVerifying.value = true;
  const asked = reader.value;
  const copies = copiesOf(nodes.peek(), cluster.peek()?.members ?? []);
  comparison.value = null;
  verdicts.value = new Map(copies.map(({ name }) => [name, { state: "checking" }]));
  const whole: WholeHistory[] = [];
  await Promise.all(
    copies.map(async ({ name, url }) => {
      const verdict = await verdictOf(url);
      if (verdict.state === "whole" && url !== null)
        whole.push({ nodeId: name, url, through: verdict.through, root: verdict.root });
      if (asked === reader.value) verdicts.value = new Map([...verdicts.value, [name, verdict]]);
    }),
  );
  const compared = await compareHistories(whole, rootAt);
  if (asked === reader.value) comparison.value = compared;
  isVerifying.value = false;
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
          <button type="button" aria-disabled={isVerifying.value} onClick={() => void verifyAll()}>
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
      {comparison.value !== null && <Compared {...comparison.value} />}
    </span>
  );
}

function Compared(compared: Comparison) {
  switch (compared.state) {
    case "same":
      return <span class="verdict whole">the same</span>;
    case "differ":
      return (
        <strong class="verdict broken" title="Keep both data directories.">
          they differ: <span class="theirs">{compared.one}</span> and <span class="theirs">{compared.other}</span> in
          their first {count(compared.through)} events
        </strong>
      );
    case "unknown":
      return (
        <span class="verdict failed" title={compared.why}>
          <span class="theirs">{compared.one}</span> and <span class="theirs">{compared.other}</span> could not be
          compared
        </span>
      );
    default:
      return assertNever(compared, "comparison");
  }
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
