// The islands of this one's transaction coordinators: who votes and leads, which islands take part, and what a person has to do. It is what this
// island's own nodes know: the page never connects to another island.

import { computed } from "@preact/signals";
import type { IslandsView } from "../../src/client/index.ts";
import {
  adviceOf,
  type IslandEntry,
  type IslandRow,
  leaderText,
  quorumText,
  registryOf,
  rowsOf,
  STATES,
} from "./islands.ts";
import { useLoaded } from "./load.ts";
import { nodes, read } from "./nodes.ts";
import { now } from "./page.ts";
import { Badge, Columns, Failed } from "./parts.tsx";
import { READ_LIMIT_MS, readAt } from "./request.ts";
import { ago, fullTime } from "./words.ts";

/** Not asked for: where there is no coordinator the answer is an error. */
export const hasIslands = computed(() => nodes.value.some(({ cluster }) => cluster?.isCoordinator === true));

export function IslandsPage() {
  if (hasIslands.value) return <Islands />;
  return (
    <section aria-labelledby="islands-title">
      <h2 id="islands-title">Islands</h2>
      <p class="hint empty">
        This cluster is no island among others. To make it one, name the others in [tc] join on each of its servers.
      </p>
    </section>
  );
}

/** The leader of the coordinators alone knows how each voter answers: it is asked where it is a node of this island. */
async function islandsNow(ended: AbortSignal): Promise<IslandsView> {
  const view = await read<IslandsView>("/v1/islands", ended);
  const leader = view.leader?.endpoint;
  const url = nodes.peek().find((node) => node.isReached && node.url === leader)?.url;
  if (view.actsInTerm !== null || url === undefined) return view;
  return await readAt<IslandsView>(url, "/v1/islands", READ_LIMIT_MS, ended);
}

function Islands() {
  const { data, error } = useLoaded("islands", islandsNow, now);
  return (
    <>
      <section aria-labelledby="islands-title">
        <h2 id="islands-title">Islands</h2>
        <Failed error={error} />
        {data === undefined ? error === null && <p class="hint">Asking…</p> : <Coordinators view={data} />}
      </section>
      {data !== undefined && (
        <section aria-labelledby="tc-registry-title">
          <h2 id="tc-registry-title">Islands that take part</h2>
          <Registry entries={registryOf(data)} />
        </section>
      )}
    </>
  );
}

function Coordinators({ view }: { readonly view: IslandsView }) {
  const advice = adviceOf(view);
  return (
    <>
      {advice !== null && (
        <ul class="alerts" id="tc-advice">
          <li class={advice.isBad ? "bad" : "warn"}>{advice.text}</li>
        </ul>
      )}
      <Facts view={view} />
      <NodesTable rows={rowsOf(view)} />
      {view.actsInTerm === null && view.leader !== null && (
        <p class="hint">How each voter answers is known to the leader alone: see its page.</p>
      )}
    </>
  );
}

function Facts({ view }: { readonly view: IslandsView }) {
  const { roster, self } = view;
  const leader = leaderText(view);
  return (
    <dl class="facts">
      <dt>Coordinators</dt>
      <dd id="tc-leader">
        {leader === null ? <Badge tone="bad" text="nobody leads" /> : <span class="theirs">{leader}</span>}
      </dd>
      <dt>A leader needs</dt>
      <dd id="tc-quorum">{quorumText(view)}</dd>
      <dt>Roster</dt>
      <dd id="tc-roster">{roster === null ? "none" : `term ${roster.term}, version ${roster.version}`}</dd>
      <dt>Cluster of coordinators</dt>
      <dd class="id">{self.tcClusterId ?? "none yet"}</dd>
      <dt>This node</dt>
      <dd class="theirs">
        {self.identity}@{self.incarnation} {self.leaving && <Badge tone="busy" text="leaving" />}
      </dd>
    </dl>
  );
}

function NodesTable({ rows }: { readonly rows: readonly IslandRow[] }) {
  return (
    <div class="scroll">
      <table id="tc-nodes">
        <Columns names={["Node", "Address", "Vote", "Announced"]} />
        <tbody>
          {rows.map((row) => (
            <NodeRow key={row.identity} row={row} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function NodeRow({ row: { identity, url, endpoint, isOwn, state, heardMs } }: { readonly row: IslandRow }) {
  return (
    <tr>
      <th scope="row">
        <span class="theirs">{identity}</span> {isOwn && <span class="hint">this node</span>}
      </th>
      <td class="theirs">
        {url === null || isOwn ? (
          endpoint
        ) : (
          <a href={url} rel="noreferrer">
            {endpoint}
          </a>
        )}
      </td>
      <td>
        <Badge {...STATES[state]} />
      </td>
      <td {...(heardMs === null ? {} : { title: fullTime(heardMs) })}>
        {heardMs === null ? "not listed" : ago(heardMs, now.value)}
      </td>
    </tr>
  );
}

function Registry({ entries }: { readonly entries: readonly IslandEntry[] }) {
  if (entries.length === 0) return <p class="hint empty">None has registered yet. Each does so by itself.</p>;
  return (
    <div class="scroll">
      <table id="tc-registry">
        <Columns names={["Island", "Reached at"]} />
        <tbody>
          {entries.map(({ backendHash, isOwn, endpoints }) => (
            <tr key={backendHash}>
              <th scope="row" title={backendHash}>
                <code>{backendHash.slice(0, 12)}…</code> {isOwn && <span class="hint">this island</span>}
              </th>
              <td class="theirs">{endpoints.join(", ")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
