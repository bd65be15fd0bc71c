// The bar that is always there: which site of a mesh this is, who leads, in which epoch, how many vote, where this page reads from, and, in red, for how
// long nobody has led.

import { computed } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { majorityOf } from "./leadership.ts";
import { cluster, goneSinceMs, hasLooked, isOpen, lastEpoch, leadership, timeline } from "./nodes.ts";
import { ownSite } from "./own-site.ts";
import { gapText } from "./timeline.ts";
import { count, duration } from "./words.ts";

const COUNT_EVERY_MS = 50;

const lastGap = computed(() => timeline.value.gaps.findLast(({ toMs }) => toMs !== null) ?? null);

export function StatusBar() {
  const { leader, epoch, voters, working, reads } = leadership.value;
  const isGone = goneSinceMs.value !== null;
  const isSite = cluster.value?.backend === "postgres";
  return (
    <div class={`bar ${isGone ? "gone" : ""}`}>
      <h1>Tenure</h1>
      <dl aria-label="Leadership" id="status">
        {ownSite.value !== null && (
          <div>
            <dt>Site</dt>
            <dd id="own-site">{ownSite.value}</dd>
          </div>
        )}
        <div class="wide">
          <dt>Leader</dt>
          <dd id="leader">
            {leader ?? (isGone ? <Counter sinceMs={goneSinceMs.value ?? 0} isReached={reads !== null} /> : "…")}
          </dd>
        </div>
        <div>
          <dt>{isGone ? "Last epoch" : "Epoch"}</dt>
          <dd id="epoch">{epoch ?? lastEpoch.value ?? "…"}</dd>
        </div>
        <div>
          <dt>{isSite ? "Nodes" : "Quorum"}</dt>
          <dd id="quorum" class={working < (isSite ? 1 : majorityOf(voters)) ? "bad" : ""}>
            {voters === 0 ? "…" : `${working} of ${voters}`}
          </dd>
        </div>
        <div>
          <dt>You read from</dt>
          <dd id="reads">{readsText(reads)}</dd>
        </div>
        {lastGap.value !== null && (
          <div>
            <dt>Last gap</dt>
            <dd id="gap" title={`Before epoch ${lastGap.value.epoch ?? "?"}, as the nodes that voted saw it`}>
              {gapText(lastGap.value, lastGap.value.fromMs)}
            </dd>
          </div>
        )}
      </dl>
      <p class="unseen" role="status" aria-live="assertive">
        {announcement(leader, epoch, isGone)}
      </p>
    </div>
  );
}

function readsText(reads: { readonly nodeId: string; readonly stalenessMs: number | null } | null): string {
  if (reads === null) return hasLooked.value && isOpen.value ? "nobody: no node answers" : "…";
  if (reads.stalenessMs === null) return `${reads.nodeId}, which can't say how old its data is`;
  return `${reads.nodeId}, ${reads.stalenessMs === 0 ? "up to date" : `${duration(reads.stalenessMs)} behind`}`;
}

/** Not the counting: a reader that speaks would never stop. */
function announcement(leader: string | null, epoch: number | null, isGone: boolean): string {
  if (leader !== null) return `${leader} leads, epoch ${epoch ?? "unknown"}`;
  return isGone ? "Nobody leads" : "";
}

function Counter({ sinceMs, isReached }: { readonly sinceMs: number; readonly isReached: boolean }) {
  const [nowMs, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), COUNT_EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <span class="count">
      {isReached ? "nobody" : "not known"} for {count(Math.max(0, nowMs - sinceMs))} ms
    </span>
  );
}
