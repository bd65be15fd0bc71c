// The timeline of leadership: a lane for each node, a bar for each term, and a lane for nobody, with how long. A term that is
// clicked shows why it began and who voted.

import { signal } from "@preact/signals";
import type { ElectionView } from "../../src/client/index.ts";
import { cluster, timeline } from "./nodes.ts";
import { now } from "./page.ts";
import { type Gap, gapText, lastedText, nodeOf, placed, REASONS, type TermBar } from "./timeline.ts";
import { clockTime, duration, fullTime } from "./words.ts";

const WINDOWS = [
  { name: "1 min", ms: 60_000 },
  { name: "10 min", ms: 600_000 },
  { name: "1 h", ms: 3_600_000 },
  { name: "All", ms: null },
] as const;
type Window = (typeof WINDOWS)[number];

const chosen = signal<Window>(WINDOWS[1]);
const opened = signal<number | null>(null);
/** In percent: narrower, a bar has no room for its epoch. */
const LABEL_WIDTH = 4;
/** Nearer to the next, a gap's text would lie over the other's. */
const GAP_TEXT_WIDTH = 8;
const END_LABEL_WIDTH = 14;
/** As in the style sheet: one that has just begun stays in its lane. */
const BAR_WIDTH_MIN = "10px";
const SPAN_MS_MIN = 20_000;

export function TimelineView() {
  const { bars, gaps } = timeline.value;
  const toMs = now.value;
  const fromMs = windowFrom(chosen.value, bars[0]?.fromMs ?? toMs, toMs);
  const names = new Set([
    ...(cluster.value?.members.map(({ nodeId }) => nodeId) ?? []),
    ...bars.map(({ nodeId }) => nodeId),
  ]);
  const bar = bars.find(({ epoch }) => epoch === opened.value);
  return (
    <section aria-labelledby="timeline-title">
      <div class="row between">
        <h2 id="timeline-title">Who led</h2>
        <div class="row" role="group" aria-label="How far back">
          {WINDOWS.map((one) => (
            <button
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
      <div class="timeline">
        {[...names].toSorted().map((nodeId) => (
          <div class="lane" key={nodeId}>
            <span class="lane-name theirs">{nodeId}</span>
            <div class="track">
              {bars
                .filter((one) => one.nodeId === nodeId)
                .map((one) => (
                  <Bar key={one.epoch} bar={one} fromMs={fromMs} toMs={toMs} />
                ))}
            </div>
          </div>
        ))}
        <div class="lane">
          <span class="lane-name">nobody</span>
          <div class="track">
            {bars.map((one) => (
              <Unknown key={one.epoch} bar={one} fromMs={fromMs} toMs={toMs} />
            ))}
            {gaps.map((gap, at) => (
              <GapBar
                key={gap.fromMs}
                gap={gap}
                neighbours={[gaps[at - 1], gaps[at + 1]]}
                fromMs={fromMs}
                toMs={toMs}
              />
            ))}
          </div>
        </div>
        <div class="lane axis" aria-hidden="true">
          <span class="lane-name" />
          <div class="row between">
            <span>{clockTime(fromMs).slice(0, 8)}</span>
            <span>now</span>
          </div>
        </div>
      </div>
      <div aria-live="polite">
        {bar === undefined ? (
          <p class="hint">Choose a term to see why it began, and who voted.</p>
        ) : (
          <TermDetails bar={bar} gap={gaps.find(({ epoch }) => epoch === bar.epoch)} />
        )}
      </div>
    </section>
  );
}

/** Not before there was anything: a young cluster's terms are to be seen. */
function windowFrom({ ms }: Window, firstMs: number, toMs: number): number {
  const sinceFirstMs = Math.max(SPAN_MS_MIN, (toMs - firstMs) * 1.03);
  return toMs - (ms === null ? sinceFirstMs : Math.min(ms, sinceFirstMs));
}

interface Placing {
  readonly fromMs: number;
  readonly toMs: number;
}

function Bar({ bar, fromMs, toMs }: Placing & { readonly bar: TermBar }) {
  const place = placed(bar.fromMs, bar.toMs ?? toMs, fromMs, toMs);
  if (place === null) return null;
  const text = lastedText(bar, toMs);
  return (
    <button
      type="button"
      class={`term ${bar.toMs === null ? "present" : ""} ${bar.isEndKnown ? "" : "open-end"}`}
      style={{ left: `min(${place.left}%, 100% - ${BAR_WIDTH_MIN})`, width: `${place.width}%` }}
      aria-pressed={opened.value === bar.epoch}
      aria-label={`${bar.nodeId} led in epoch ${bar.epoch}${bar.toMs === null ? " until now" : ""}, ${text}`}
      title={`epoch ${bar.epoch}, ${text}`}
      onClick={() => (opened.value = opened.value === bar.epoch ? null : bar.epoch)}
    >
      {place.width > LABEL_WIDTH ? bar.epoch : ""}
      {!bar.isEndKnown && place.width > END_LABEL_WIDTH ? ", end not known" : ""}
    </button>
  );
}

/** In the lane of nobody, where nobody knows whether somebody led. */
function Unknown({ bar, fromMs, toMs }: Placing & { readonly bar: TermBar }) {
  const place = bar.isEndKnown || bar.toMs === null ? null : placed(bar.fromMs, bar.toMs, fromMs, toMs);
  if (place === null) return null;
  return (
    <span
      class="not-known"
      style={{ left: `${place.left}%`, width: `${place.width}%` }}
      title={`not known whether somebody led since epoch ${bar.epoch} ended`}
    >
      {place.width > END_LABEL_WIDTH ? "not known" : ""}
    </span>
  );
}

interface GapProps extends Placing {
  readonly gap: Gap;
  readonly neighbours: readonly [Gap | undefined, Gap | undefined];
}

function GapBar({ gap, neighbours: [before, next], fromMs, toMs }: GapProps) {
  const place = placed(gap.fromMs, gap.toMs ?? toMs, fromMs, toMs);
  if (place === null) return null;
  const text = gapText(gap, toMs);
  // At the right edge the text has no room after the bar.
  const isLate = place.left > 85;
  const roomMs = isLate
    ? gap.fromMs - (before?.toMs ?? Number.NEGATIVE_INFINITY)
    : (next?.fromMs ?? Number.POSITIVE_INFINITY) - gap.fromMs;
  const hasRoom = (roomMs / (toMs - fromMs)) * 100 > GAP_TEXT_WIDTH;
  return (
    <span
      class={`gap ${isLate ? "late" : ""}`}
      style={{ left: `${place.left}%`, width: `${place.width}%` }}
      title={`nobody led for ${text}`}
    >
      {hasRoom && <span class="gap-text">{text}</span>}
    </span>
  );
}

function TermDetails({ bar, gap }: { readonly bar: TermBar; readonly gap: Gap | undefined }) {
  return (
    <div class="card" id="term">
      <h3>
        Epoch {bar.epoch}: <span class="theirs">{bar.nodeId}</span>
      </h3>
      {bar.election === null && <p>{unknownText(bar)}</p>}
      <dl class="facts">
        {bar.election !== null && <ElectionFacts fromMs={bar.fromMs} election={bar.election} />}
        {gap !== undefined && <dt>Nobody led before</dt>}
        {gap !== undefined && <dd>{gapText(gap, now.value)}</dd>}
        <dt>Led</dt>
        <dd>
          {lastedText(bar, now.value)}
          {!bar.isEndKnown && bar.toMs !== null && `; not after ${clockTime(bar.toMs)}`}
        </dd>
      </dl>
    </div>
  );
}

function unknownText({ fromMs }: TermBar): string {
  const seen = `This page has seen it lead since ${clockTime(fromMs)}.`;
  if (cluster.value?.backend !== "postgres") return `${seen} How it began no node remembers.`;
  return `${seen} On Postgres there are no votes: the database's lock goes to the node that has waited longest.`;
}

function ElectionFacts({ fromMs, election }: { readonly fromMs: number; readonly election: ElectionView }) {
  const rivals = election.candidates.filter((one) => one !== election.candidate);
  return (
    <>
      <dt>Began</dt>
      <dd title={fullTime(fromMs)}>{clockTime(fromMs)}</dd>
      <dt>Cause</dt>
      <dd>
        {election.reason}: {REASONS[election.reason]}
      </dd>
      <dt>Votes</dt>
      <dd>
        {election.votes.map(({ voter, granted }) => `${nodeOf(voter)} ${granted ? "yes" : "no"}`).join(", ") ||
          "not known"}
      </dd>
      <dt>Took</dt>
      <dd>{duration(election.durationMs)}</dd>
      {rivals.length > 0 && <dt>Against</dt>}
      {rivals.length > 0 && <dd>{rivals.map(nodeOf).join(", ")}</dd>}
    </>
  );
}
