// Who works and on what: agents, queues, schedules, each with what an operator may do about it.

import type { AgentView, QueueView, ScheduleView } from "../../src/client/index.ts";
import { changes, client } from "./events.ts";
import { pairsText } from "./job-view.tsx";
import { useLoaded } from "./load.ts";
import { leadership } from "./nodes.ts";
import { now } from "./page.ts";
import { Badge, Columns, Failed, Link } from "./parts.tsx";
import { bodyAt, READ_LIMIT_MS } from "./request.ts";
import { Steer } from "./steer.tsx";
import { ago, count, fullTime } from "./words.ts";

export function WorkPage() {
  return (
    <>
      <Agents />
      <Queues />
      <Schedules />
    </>
  );
}

/** A node of an older version has no such route. */
function useDrain(): boolean {
  const { reads } = leadership.value;
  const url = reads?.url ?? location.origin;
  const { data } = useLoaded(`openapi ${url}`, (signal) => bodyAt(url, "/openapi.json", READ_LIMIT_MS, signal));
  const { paths = {} } = (data ?? {}) as { readonly paths?: object };
  return Object.hasOwn(paths, "/v1/agents/{name}/drain");
}

function Agents() {
  const { data, error, again } = useLoaded("agents", (signal) => client.peek().agents({ signal }), changes.worker);
  const canDrain = useDrain();
  return (
    <section aria-labelledby="agents-title">
      <h2 id="agents-title">Agents</h2>
      <Failed error={error} />
      {data?.length === 0 && <p class="hint empty">No agent is known. Start one: tenure agent start --help</p>}
      {data !== undefined && data.length > 0 && (
        <div class="scroll">
          <table id="agents">
            <Columns names={["Agent", "State", "Runs", "Kinds", "Labels", "Platform", "Since"]} hasActions />
            <tbody>
              {data.map((agent) => (
                <AgentRow key={agent.name} agent={agent} canDrain={canDrain} again={again} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

interface AgentProps {
  readonly agent: AgentView;
  readonly canDrain: boolean;
  readonly again: () => void;
}

function AgentRow({ agent, canDrain, again }: AgentProps) {
  const { name, state, running, capacity, kinds, labels, platform, registeredAtMs } = agent;
  const isDraining = state === "draining";
  const drain = async (): Promise<string> => {
    await client.peek().drainAgent(name, !isDraining);
    again();
    return isDraining ? `${name} is given jobs again.` : `${name} is given no more jobs; what it has goes on.`;
  };
  const remove = async (): Promise<string> => {
    await client.peek().removeAgent(name);
    again();
    return `${name} is removed.`;
  };
  return (
    <tr>
      <th scope="row" class="theirs">
        {name}
      </th>
      <td>
        <Badge tone={state === "online" ? "good" : state === "draining" ? "busy" : "bad"} text={state} />
      </td>
      <td>
        {running} of {capacity}
      </td>
      <td class="theirs about">{kinds.join(", ")}</td>
      <td class="theirs about">{pairsText(labels)}</td>
      <td>
        <span class="theirs">{platform}</span>
      </td>
      <td title={fullTime(registeredAtMs)}>{ago(registeredAtMs, now.value)}</td>
      <td class="actions">
        {canDrain && state !== "offline" && (
          <Steer
            text={isDraining ? "Undrain" : "Drain"}
            name={`${isDraining ? "Give jobs again to" : "Drain"} ${name}`}
            ask={isDraining ? undefined : drainQuestion(name)}
            act={drain}
          />
        )}
        <Steer
          text="Remove"
          name={`Remove ${name}`}
          ask={{
            title: `Remove ${name}?`,
            text: `What it holds (${running}) is lost to it and runs elsewhere. If it still lives, it comes back by itself.`,
            verb: "Remove the agent",
          }}
          act={remove}
        />
      </td>
    </tr>
  );
}

function drainQuestion(name: string) {
  return {
    title: `Drain ${name}?`,
    text: "It is given no more jobs until somebody undrains it. What it has goes on.",
    verb: "Drain the agent",
  };
}

function Queues() {
  const { data, error, again } = useLoaded("queues", (signal) => client.peek().queues({ signal }), changes.build);
  return (
    <section aria-labelledby="queues-title">
      <h2 id="queues-title">Queues</h2>
      <Failed error={error} />
      {data?.length === 0 && <p class="hint empty">No queue has anything in it, and none is paused.</p>}
      {data !== undefined && data.length > 0 && (
        <div class="scroll">
          <table id="queues">
            <Columns names={["Queue", "State", "Pending", "Running"]} hasActions />
            <tbody>
              {data.map((one) => (
                <QueueRow key={one.queue} queue={one} again={again} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function QueueRow({
  queue: { queue, paused, pending, running },
  again,
}: {
  readonly queue: QueueView;
  readonly again: () => void;
}) {
  const steer = async (): Promise<string> => {
    if (paused) await client.peek().resumeQueue(queue);
    else await client.peek().pauseQueue(queue);
    again();
    return paused
      ? `Jobs of ${queue} are given out again.`
      : `${queue} is paused: what runs goes on, nothing new is given out.`;
  };
  return (
    <tr>
      <th scope="row">
        <Link to={{ view: "jobs", queue, job: "", cursor: "" }} class="theirs">
          {queue}
        </Link>
      </th>
      <td>
        <Badge tone={paused ? "busy" : "good"} text={paused ? "paused" : "open"} />
      </td>
      <td>{count(pending)}</td>
      <td>{count(running)}</td>
      <td class="actions">
        <Steer
          text={paused ? "Resume" : "Pause"}
          name={`${paused ? "Resume" : "Pause"} ${queue}`}
          ask={paused ? undefined : pauseQuestion(queue)}
          act={steer}
        />
      </td>
    </tr>
  );
}

function pauseQuestion(queue: string) {
  return {
    title: `Pause ${queue}?`,
    text: "None of its jobs is given out until somebody resumes it. What runs goes on.",
    verb: "Pause the queue",
  };
}

function Schedules() {
  const { data, error } = useLoaded("schedules", (signal) => client.peek().schedules({ signal }), changes.schedule);
  return (
    <section aria-labelledby="schedules-title">
      <h2 id="schedules-title">Schedules</h2>
      <Failed error={error} />
      {data?.length === 0 && <p class="hint empty">There is no schedule. Make one: tenure schedule put --help</p>}
      {data !== undefined && data.length > 0 && (
        <div class="scroll">
          <table id="schedules">
            <Columns names={["Schedule", "When", "Kind", "Last", "Next"]} />
            <tbody>
              {data.map((one) => (
                <ScheduleRow key={one.name} schedule={one} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function ScheduleRow({
  schedule: { name, cron, timeZone, spec, paused, lastAtMs, nextAtMs },
}: {
  readonly schedule: ScheduleView;
}) {
  return (
    <tr>
      <th scope="row" class="theirs">
        {name}
      </th>
      <td class="theirs">
        {cron} ({timeZone}){paused && " "}
        {paused && <Badge tone="busy" text="paused" />}
      </td>
      <td>
        <span class="theirs">{spec.kind}</span>
      </td>
      <td {...(lastAtMs === null ? {} : { title: fullTime(lastAtMs) })}>
        {lastAtMs === null ? "never" : ago(lastAtMs, now.value)}
      </td>
      <td {...(nextAtMs === null ? {} : { title: fullTime(nextAtMs) })}>
        {nextAtMs === null ? "-" : ago(nextAtMs, now.value)}
      </td>
    </tr>
  );
}
