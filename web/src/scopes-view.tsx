// Scopes that other processes lead: who holds which, since when, who held it before, and how to make a holder go.

import type { ScopeTransitionView, ScopeView } from "../../src/client/index.ts";
import { client } from "./events.ts";
import { useLoaded } from "./load.ts";
import { cluster } from "./nodes.ts";
import { address, go, now } from "./page.ts";
import { Badge, Columns, Failed, Link } from "./parts.tsx";
import { Steer } from "./steer.tsx";
import { ago, clockTime, duration, fullTime } from "./words.ts";

export function ScopesPage() {
  if (cluster.value?.backend !== "postgres") return <Scopes />;
  return (
    <p class="hint">On Postgres the scopes are in the database itself: tenure scope list --backend postgres://…</p>
  );
}

function Scopes() {
  const { data, error, again } = useLoaded("scopes", (signal) => client.peek().scopes.list({ signal }));
  const { scope } = address.value;
  return (
    <section aria-labelledby="scopes-title">
      <h2 id="scopes-title">Scopes</h2>
      <Failed error={error} />
      {data?.length === 0 && (
        <p class="hint empty">
          Nobody has led a scope here yet. Try it: tenure run --scope try --backend {location.origin} -- sleep 60 (with
          a key of role client in TENURE_API_KEY)
        </p>
      )}
      {data !== undefined && data.length > 0 && (
        <div class="scroll">
          <table id="scopes">
            <Columns names={["Scope", "Epoch", "Held by", "Since"]} hasActions />
            <tbody>
              {data.map((one) => (
                <ScopeRow key={one.scope} scope={one} again={again} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {scope !== "" && <History key={scope} scope={scope} />}
    </section>
  );
}

function ScopeRow({
  scope: { scope, epoch, holder },
  again,
}: {
  readonly scope: ScopeView;
  readonly again: () => void;
}) {
  const question = (force: boolean) => ({
    title: force ? `Take ${scope} away?` : `Ask the holder of ${scope} to step down?`,
    text: force
      ? `${holder?.identity ?? "Its holder"} loses it at once, whatever it is doing: its writes are refused from the next epoch on.`
      : `${holder?.identity ?? "Its holder"} is told with its next renewal, ends its work and resigns.`,
    verb: force ? "Take it away" : "Ask it to resign",
  });
  const resign = async (force: boolean): Promise<string> => {
    const about = await client.peek().scopes.askResign(scope, force);
    again();
    if (about === null) return `Nobody holds ${scope}.`;
    return force ? `Epoch ${about} of ${scope} is over.` : `The holder in epoch ${about} was asked to resign.`;
  };
  return (
    <tr>
      <th scope="row">
        <Link to={{ scope }} class="theirs" current={address.value.scope === scope}>
          {scope}
        </Link>
      </th>
      <td>{epoch}</td>
      <td class="theirs">
        {holder?.identity ?? "nobody"}{" "}
        {holder?.resignRequested === true && <Badge tone="busy" text="asked to resign" />}
      </td>
      <td {...(holder === null ? {} : { title: fullTime(holder.acquiredAtMs) })}>
        {holder === null ? "-" : ago(holder.acquiredAtMs, now.value)}
      </td>
      <td class="actions">
        {holder !== null && (
          <>
            <Steer
              text="Ask to resign"
              name={`Ask the holder of ${scope} to resign`}
              ask={question(false)}
              act={() => resign(false)}
            />
            <Steer text="Take away" name={`Take ${scope} away`} ask={question(true)} act={() => resign(true)} />
          </>
        )}
      </td>
    </tr>
  );
}

function History({ scope }: { readonly scope: string }) {
  const { data, error } = useLoaded(`history ${scope}`, (signal) => client.peek().scopes.history(scope, { signal }));
  return (
    <section aria-labelledby="history-title" class="card">
      <div class="row between">
        <h3 id="history-title">
          Who led <span class="theirs">{scope}</span>
        </h3>
        <button type="button" class="quiet" onClick={() => go({ scope: "" })}>
          Close
        </button>
      </div>
      <Failed error={error} />
      {data !== undefined && <Transitions transitions={data} />}
    </section>
  );
}

function Transitions({ transitions }: { readonly transitions: readonly ScopeTransitionView[] }) {
  return (
    <div class="scroll">
      <table id="history">
        <Columns names={["At", "Epoch", "Who", "What", "Held for"]} />
        <tbody>
          {transitions.map(({ atMs, epoch, identity, reason, heldMs }) => (
            <tr key={`${epoch} ${reason} ${atMs}`}>
              <td title={fullTime(atMs)}>{clockTime(atMs)}</td>
              <td>{epoch}</td>
              <td>
                <span class="theirs">{identity}</span>
              </td>
              <td>{reason}</td>
              <td>{heldMs === null ? "-" : duration(heldMs)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
