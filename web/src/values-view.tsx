// Values: small documents next to the scopes, by name, a page at a time. A page of them is at most half a megabyte, so it is loaded again every few
// seconds, as scopes are: a stream for each reader would cost each node more.

import { useMemo, useRef } from "preact/hooks";
import type { StoredValue } from "../../src/client/index.ts";
import { valuesPath } from "./address.ts";
import { client } from "./events.ts";
import { useLoaded } from "./load.ts";
import { cluster, read } from "./nodes.ts";
import { address, go, now } from "./page.ts";
import { Badge, Columns, Failed, Link } from "./parts.tsx";
import { Steer } from "./steer.tsx";
import { Typed } from "./typed.tsx";
import { contentText, type ListedValue, measured } from "./values.ts";
import { ago, fullTime, sizeText } from "./words.ts";

const PAGE_SIZE = 50;
const COLUMNS = ["Value", "Version", "Size", "Changed", "Written by"];

interface ValuesAnswer {
  readonly values: readonly StoredValue[];
  readonly next: string | null;
  readonly asOf: number;
}

interface ValuesList {
  readonly values: readonly ListedValue[];
  readonly next: string | null;
}

export function ValuesPage() {
  if (cluster.value?.backend !== "postgres") return <Values />;
  return (
    <section aria-labelledby="values-title">
      <h2 id="values-title">Values</h2>
      <p class="hint empty">
        Nodes on Postgres keep no values: what a leader writes is in the database itself, in the transaction that checks
        its epoch (term.tx, or tenure_require_epoch).
      </p>
    </section>
  );
}

function Values() {
  const { prefix, cursor, value } = address.value;
  const path = valuesPath(address.value, PAGE_SIZE);
  /** The last version that this reader has written: a node that has not applied it yet would show what was deleted. */
  const written = useRef(0);
  const ask = async (signal: AbortSignal): Promise<ValuesList> => {
    let found = await read<ValuesAnswer>(path, signal);
    if (found.asOf < written.current) {
      found = await read<ValuesAnswer>(`${path}&consistency=linearizable`, signal);
    }
    return { values: found.values.map(measured), next: found.next };
  };
  const { data, error, isStale, again } = useLoaded(path, ask);
  const remove = async ({ name, version }: StoredValue): Promise<string> => {
    try {
      // What was read is deleted, and nothing that has come since.
      const { deleted, version: at } = await client.peek().values.delete(name, { ifVersion: version });
      written.current = Math.max(written.current, at ?? 0);
      if (address.peek().value === name) go({ value: "" }, "replace");
      return deleted ? `${name} was deleted.` : `There was no value ${name} any more.`;
    } finally {
      again();
    }
  };
  const isElsewhere = value !== "" && data !== undefined && !isStale && !data.values.some(({ name }) => name === value);
  return (
    <section aria-labelledby="values-title">
      <h2 id="values-title">Values</h2>
      <form class="filters" role="search" aria-label="Values" onSubmit={(event) => event.preventDefault()}>
        <Typed name="prefix" label="Name begins with" value={prefix} />
      </form>
      <Failed error={error} />
      {isElsewhere && <Elsewhere key={value} name={value} />}
      {data === undefined ? (
        error === null && <p class="hint">Asking…</p>
      ) : (
        <Table values={data.values} isStale={isStale} remove={remove} />
      )}
      <nav class="row" aria-label="Pages">
        {cursor !== "" && <Link to={{ cursor: "" }}>First</Link>}
        {data !== undefined && data.next !== null && <Link to={{ cursor: data.next }}>Next</Link>}
      </nav>
    </section>
  );
}

interface TableProps {
  readonly values: readonly ListedValue[];
  /** They are the answer to the question before. */
  readonly isStale: boolean;
  readonly remove: (value: StoredValue) => Promise<string>;
}

function Table({ values, isStale, remove }: TableProps) {
  if (values.length === 0) return <Empty />;
  return (
    <div class={`scroll ${isStale ? "stale" : ""}`}>
      <table id="values">
        <Columns names={COLUMNS} hasActions />
        <tbody>
          {values.map((value) => (
            <ValueRows key={value.name} value={value} remove={remove} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Empty() {
  const { prefix, cursor } = address.value;
  if (cursor !== "") return <p class="hint empty">There are no more.</p>;
  if (prefix !== "") return <p class="hint empty">No value has a name that begins so.</p>;
  const command = `tenure value put try/cursor '{"at": 1}' --url ${location.origin}`;
  return (
    <p class="hint empty">
      Nothing is kept here yet. Try it: <code>{command}</code> (with a key of role client in TENURE_API_KEY)
    </p>
  );
}

function ValueRows({ value, remove }: { readonly value: ListedValue; readonly remove: TableProps["remove"] }) {
  const { name, version, bytes, updatedAtMs, scope } = value;
  const isOpen = address.value.value === name;
  const whose = scope === undefined ? "" : `, the next leader of ${scope} too`;
  const question = {
    title: `Delete ${name}?`,
    text: `Version ${version} can't be brought back: whoever reads it finds none${whose}. If it has changed meanwhile, nothing is deleted.`,
    verb: "Delete the value",
  };
  return (
    <>
      <tr class={isOpen ? "opened" : ""}>
        <th scope="row">
          <Link to={{ value: isOpen ? "" : name }} class="theirs" expanded={isOpen}>
            {name}
          </Link>
          <Locked value={value} />
        </th>
        <td>{version}</td>
        <td>{sizeText(bytes)}</td>
        <td title={fullTime(updatedAtMs)}>{ago(updatedAtMs, now.value)}</td>
        <td>
          <Writer value={value} />
        </td>
        <td class="actions">
          <Steer text="Delete" name={`Delete ${name}`} ask={question} act={() => remove(value)} />
        </td>
      </tr>
      {isOpen && (
        <tr class="content">
          <td colSpan={COLUMNS.length + 1}>
            <Content value={value} />
          </td>
        </tr>
      )}
    </>
  );
}

/** It can be read, and not written, until that transaction is decided. */
function Locked({ value: { pendingTxn } }: { readonly value: StoredValue }) {
  if (pendingTxn === undefined) return null;
  const why = `Locked by the transaction ${pendingTxn}, which is prepared here and not decided yet. See the page Islands.`;
  return (
    <span title={why}>
      {" "}
      <Badge tone="busy" text="locked" />
    </span>
  );
}

function Writer({ value: { scope, epoch } }: { readonly value: StoredValue }) {
  if (scope === undefined) return <>-</>;
  return (
    <span class="theirs">
      <Link to={{ view: "scopes", scope }}>{scope}</Link>, epoch {epoch}
    </span>
  );
}

function Content({ value: { name, version, value } }: { readonly value: StoredValue }) {
  const text = useMemo(() => contentText(value), [name, version]);
  return (
    <pre class="theirs" tabIndex={0} aria-label={`Content of ${name}`}>
      {text}
    </pre>
  );
}

/** The one that is open, where it is not on this page of the list. */
function Elsewhere({ name }: { readonly name: string }) {
  const { data, error } = useLoaded(`value ${name}`, (signal) =>
    read<StoredValue>(`/v1/values/${encodeURIComponent(name)}`, signal),
  );
  return (
    <section aria-labelledby="value-title" class="card">
      <div class="row between">
        <h3 id="value-title" class="theirs">
          {name}
        </h3>
        <button type="button" class="quiet" onClick={() => go({ value: "" })}>
          Close
        </button>
      </div>
      <Failed error={error} />
      {data !== undefined && error === null && (
        <>
          <p class="hint">
            Version {data.version}, changed{" "}
            <span title={fullTime(data.updatedAtMs)}>{ago(data.updatedAtMs, now.value)}</span>,{" "}
            {data.scope === undefined ? (
              "written without an epoch"
            ) : (
              <>
                written by <Writer value={data} />
              </>
            )}
            <Locked value={data} />
          </p>
          <Content value={data} />
        </>
      )}
    </section>
  );
}
