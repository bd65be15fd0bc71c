// The cluster: what is wrong with it, who led, its members, and its jobs in numbers.

import { computed } from "@preact/signals";
import type { MemberView, StatsView } from "../../src/client/index.ts";
import { changes, client } from "./events.ts";
import type { Look } from "./leadership.ts";
import { useLoaded } from "./load.ts";
import { alone, cluster, leadership, nodes, read } from "./nodes.ts";
import { now } from "./page.ts";
import { Badge, Columns, Failed } from "./parts.tsx";
import { healthOf, lookAtMember } from "./reach.ts";
import { READ_LIMIT_MS, readAt } from "./request.ts";
import { Steer } from "./steer.tsx";
import { TimelineView } from "./timeline-view.tsx";
import { count, duration, plural, refusedSum } from "./words.ts";

export function ClusterPage() {
  return (
    <>
      <Alerts />
      <Numbers />
      <TimelineView />
      <Members />
    </>
  );
}

function Alerts() {
  const raised = nodes.value.flatMap(({ isReached, nodeId, cluster: view }) =>
    isReached ? (view?.alerts ?? []).map((alert) => ({ ...alert, by: nodeId ?? "?" })) : [],
  );
  if (raised.length === 0) return null;
  return (
    <section aria-labelledby="alerts-title">
      <h2 id="alerts-title">Alerts</h2>
      <ul class="alerts">
        {raised.map(({ name, severity, message, sinceWallMs, nodeId, by }) => (
          <li key={`${by} ${name} ${nodeId ?? ""}`} class={severity === "critical" ? "bad" : "warn"}>
            <strong>{name}</strong> {by}: {message} <span class="hint">(for {duration(now.value - sinceWallMs)})</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Numbers() {
  const { data, error } = useLoaded("stats", (signal) => read<StatsView>("/v1/stats", signal), changes.build);
  const { data: refused } = useLoaded(`refused ${reachedUrls.value}`, refusedEverywhere);
  if (data === undefined) return error === null ? null : <Failed error={error} />;
  const { byState, agentsOnline, finished } = data;
  const running = (byState.assigned ?? 0) + (byState.building ?? 0) + (byState.cancelling ?? 0);
  const numbers: [string, number][] = [
    ["Pending", byState.pending ?? 0],
    ["Running", running],
    ["Finished", finished],
    ["Failed, kept", byState.failed ?? 0],
    ["Agents online", agentsOnline],
  ];
  return (
    <section aria-label="Jobs in numbers">
      <dl class="numbers">
        {numbers.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{count(value)}</dd>
          </div>
        ))}
        {refused !== undefined && (
          <div title="STALE_EPOCH: whoever reported had lost the job before. Each node counts from its start.">
            <dt>Stale results refused</dt>
            <dd id="refused">{count(refused.count)}</dd>
            <dd class="hint">since {refused.by.join(", ")} started</dd>
          </div>
        )}
      </dl>
      <Failed error={error} />
    </section>
  );
}

/** Another node that answers is asked at once. */
const reachedUrls = computed(() => nodes.value.flatMap(({ isReached, url }) => (isReached ? [url] : [])).join(" "));

/** Each node counts what it refused itself while it led: of one that does not answer nothing is known. */
async function refusedEverywhere(signal: AbortSignal) {
  const asked = nodes.peek().filter(({ isReached }) => isReached);
  const answers = await Promise.allSettled(
    asked.map(async ({ url, nodeId }) => {
      const { staleRejected } = await readAt<StatsView>(url, "/v1/stats", READ_LIMIT_MS, signal);
      return { by: nodeId ?? url, staleRejected };
    }),
  );
  const counts = answers.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  // What was counted before stays on the screen.
  if (counts.length === 0) throw new Error("no node says what it has refused");
  return refusedSum(counts);
}

function Members() {
  const view = cluster.value;
  if (view === null) return <p class="hint">No node has said yet who belongs to the cluster.</p>;
  const { leader } = leadership.value;
  return (
    <section aria-labelledby="members-title">
      <h2 id="members-title">Nodes</h2>
      <div class="scroll">
        <table>
          <Columns names={["Node", "Kind", "Role", "Health", "Behind by", "Address", "Version"]} hasActions />
          <tbody>
            {view.members.map((member) => (
              <MemberRow
                key={`${member.nodeId}@${member.incarnation}`}
                member={member}
                leader={leader}
                look={lookAtMember(nodes.value, member)}
              />
            ))}
          </tbody>
        </table>
      </div>
      <p class="hint">
        Cluster <span class="theirs">{view.clusterId}</span>,{" "}
        {view.backend === "raft" ? "on its nodes' own disks" : "on Postgres"}
        {view.isJoint ? "; the membership is changing" : ""}.
      </p>
    </section>
  );
}

interface RowProps {
  readonly member: MemberView;
  readonly leader: string | null;
  readonly look: Look | undefined;
}

function MemberRow({ member, leader, look }: RowProps) {
  const { nodeId, kind, url, progress } = member;
  const isLeader = nodeId === leader;
  const health = healthOf(member, isLeader, look, alone.value !== null);
  const canLead = kind === "voter" && !isLeader && leader !== null && health.text === "ok";
  return (
    <tr>
      <th scope="row" class="theirs">
        {nodeId}
      </th>
      <td>{kind}</td>
      <td>{isLeader ? <Badge tone="good" text="leader" /> : look?.role === "DRAINING" ? "draining" : "follower"}</td>
      <td>
        <Badge {...health} />
      </td>
      <td>{isLeader ? "-" : behindText(progress, look)}</td>
      <td>
        <span class="theirs">{url ?? "tells none"}</span>
      </td>
      <td>{look?.cluster?.version ?? "-"}</td>
      <td class="actions">
        {canLead && (
          <Steer
            text="Make leader"
            name={`Hand leadership to ${nodeId}`}
            ask={{
              title: `Hand leadership to ${nodeId}?`,
              text: `${leader} stops taking writes for a moment, and ${nodeId} goes on in a new epoch.`,
              verb: "Hand over",
            }}
            act={async () => {
              const { newLeaderId } = await client.peek().transfer({ target: nodeId });
              return `${newLeaderId ?? nodeId} leads.`;
            }}
          />
        )}
      </td>
    </tr>
  );
}

function behindText(progress: MemberView["progress"], look: Look | undefined): string {
  if (progress !== null) return plural(progress.lag, "entry", "entries");
  return look?.isReached !== true || look.stalenessMs === null ? "-" : duration(look.stalenessMs);
}
