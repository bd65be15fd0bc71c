// The islands of this one's transaction coordinators: who votes and leads, which islands take part, and what a person has to do. It is what this
// island's own nodes know: the page never connects to another island.

import { computed } from "@preact/signals";
import type { IslandsView, IslandTransactionsView } from "../../src/client/index.ts";
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
import { doubtAdvice, type WaitingRow, waitingRows } from "./transactions.ts";
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
      {data?.transactions && <Transactions view={data} transactions={data.transactions} />}
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

interface TransactionsProps {
  readonly view: IslandsView;
  readonly transactions: IslandTransactionsView;
}

function Transactions({ view, transactions }: TransactionsProps) {
  const advice = doubtAdvice(transactions);
  const { waiting, isAll, prepared, inDoubt, undeliveredJobs } = transactions;
  return (
    <section aria-labelledby="txn-title">
      <h2 id="txn-title">Transactions on this island</h2>
      {advice !== null && (
        <ul class="alerts" id="txn-advice">
          <li class="warn">{advice}</li>
        </ul>
      )}
      <dl class="facts">
        <dt>Prepared, not decided</dt>
        <dd id="txn-prepared">{prepared}</dd>
        <dt>In doubt</dt>
        <dd id="txn-in-doubt">{inDoubt}</dd>
        <dt>Jobs to submit</dt>
        <dd id="txn-jobs">{undeliveredJobs}</dd>
      </dl>
      {waiting.length === 0 ? (
        <p class="hint empty">None waits for another island.</p>
      ) : (
        <Waiting rows={waitingRows(view, now.value)} />
      )}
      {!isAll && <p class="hint">There are more: tenure txn list --in-doubt has all of them.</p>}
    </section>
  );
}

function Waiting({ rows }: { readonly rows: readonly WaitingRow[] }) {
  return (
    <div class="scroll">
      <table id="txn-waiting">
        <Columns names={["Transaction", "Phase", "Since", "Locks here", "Home", "Waits for"]} />
        <tbody>
          {rows.map(({ id, phase, sinceMs, locks, home, waitsFor }) => (
            <tr key={id}>
              <th scope="row">
                <code class="theirs">{id}</code>
              </th>
              <td>
                <Badge {...phase} />
              </td>
              <td title={fullTime(sinceMs)}>{ago(sinceMs, now.value)}</td>
              <td class="theirs">{locks === "" ? "-" : locks}</td>
              <td class="theirs">{home}</td>
              <td class="theirs">
                {waitsFor.map(({ backendHash, text }) => (
                  <div key={backendHash} title={backendHash}>
                    {text}
                  </div>
                ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
