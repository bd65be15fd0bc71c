// One job: why it waits, its attempts with their epochs, what it was given and what came of it, and its log as it is written.

import type { JobAttemptView, JobView, Json } from "../../src/client/index.ts";
import { changes, client } from "./events.ts";
import { useLoaded } from "./load.ts";
import { LogView } from "./log-view.tsx";
import { read } from "./nodes.ts";
import { now } from "./page.ts";
import { Badge, Columns, Failed, Link } from "./parts.tsx";
import { Steer } from "./steer.tsx";
import { ago, attemptText, clockTime, duration, fullTime, isFenced, pendingText, toneOf } from "./words.ts";

const CANCEL_QUESTION = {
  title: "Cancel this job?",
  text: "Whoever runs it is told to stop. What it has done outside is not undone.",
  verb: "Cancel the job",
};
const RETRY_QUESTION = {
  title: "Run this job once more?",
  text: "It gets fresh budgets of attempts and losses.",
  verb: "Run again",
};
const FINAL: readonly string[] = ["completed", "failed", "cancelled"];
/** Of a payload or a result; the API has all of it. */
const JSON_LETTERS_MAX = 20_000;

export function JobPage({ id }: { readonly id: string }) {
  const path = `/v1/jobs/${encodeURIComponent(id)}`;
  const { data: job, error, again } = useLoaded(path, (signal) => read<JobView>(path, signal), changes.build);
  return (
    <article aria-labelledby="job-title">
      <p>
        <Link to={{ job: "" }}>All jobs</Link>
      </p>
      <div class="row between">
        <h2 id="job-title">
          Job <span class="id">{id}</span>
        </h2>
        {job !== undefined && <Actions job={job} again={again} />}
      </div>
      <Failed error={error} />
      {job !== undefined && <Details job={job} />}
    </article>
  );
}

function Actions({ job, again }: { readonly job: JobView; readonly again: () => void }) {
  const isOver = FINAL.includes(job.state);
  const steer = async (verb: "cancel" | "retry"): Promise<string> => {
    const { state } = await client.peek()[verb](job.id);
    again();
    return `The job is ${state}.`;
  };
  return (
    <div class="row">
      {!isOver && job.state !== "cancelling" && (
        <Steer text="Cancel" name={`Cancel job ${job.id}`} ask={CANCEL_QUESTION} act={() => steer("cancel")} />
      )}
      {isOver && (
        <Steer text="Run again" name={`Run again job ${job.id}`} ask={RETRY_QUESTION} act={() => steer("retry")} />
      )}
    </div>
  );
}

function Details({ job }: { readonly job: JobView }) {
  const { spec, state, attempts } = job;
  const last = attempts.at(-1);
  return (
    <>
      <p class="row">
        <Badge tone={toneOf(state)} text={state} />
        {job.pendingReason !== null && <span id="why">It waits: {pendingText(job.pendingReason)}.</span>}
        {job.progress !== null && !FINAL.includes(state) && (
          <span class="theirs">
            {job.progress.share === null ? "" : `${Math.floor(job.progress.share * 100)} % `}
            {job.progress.message ?? ""}
          </span>
        )}
      </p>
      {job.error !== null && (
        <p class="failed theirs">
          <strong>Error:</strong> {job.error.message}
        </p>
      )}
      <dl class="facts">
        <dt>Kind</dt>
        <dd class="theirs">{spec.kind}</dd>
        <dt>Queue</dt>
        <dd class="theirs">{spec.queue}</dd>
        <dt>Priority</dt>
        <dd>{spec.priority}</dd>
        <dt>Labels</dt>
        <dd class="theirs">{pairsText(spec.labels)}</dd>
        <dt>Submitted</dt>
        <dd title={fullTime(job.submittedAtMs)}>
          {ago(job.submittedAtMs, now.value)} by <span class="theirs">{job.submittedBy}</span>
        </dd>
        <dt>Budget</dt>
        <dd>
          {job.failures} of {spec.attemptsMax} failures, {job.losses} of {spec.lossesMax} losses
        </dd>
      </dl>
      <Attempts attempts={attempts} />
      {last !== undefined && <LogView key={`${job.id} ${last.attempt}`} id={job.id} attempt={last.attempt} />}
      <JsonBlock title="Payload" value={spec.payload} />
      {state === "completed" && <JsonBlock title="Result" value={job.result} />}
    </>
  );
}

function Attempts({ attempts }: { readonly attempts: readonly JobAttemptView[] }) {
  if (attempts.length === 0) return <p class="hint">No agent has had it yet.</p>;
  return (
    <section aria-labelledby="attempts-title">
      <h3 id="attempts-title">Attempts</h3>
      <div class="scroll">
        <table id="attempts">
          <Columns names={["Attempt", "Job epoch", "Leader epoch", "Agent", "Given out", "For", "What became of it"]} />
          <tbody>
            {attempts.map((one) => (
              <tr key={one.attempt}>
                <th scope="row">{one.attempt}</th>
                <td>{one.jobEpoch}</td>
                <td>{one.leaderEpoch}</td>
                <td>
                  <span class="theirs">{one.agent}</span>
                </td>
                <td title={fullTime(one.assignedAtMs)}>{clockTime(one.assignedAtMs)}</td>
                <td>{duration((one.endedAtMs ?? now.value) - one.assignedAtMs)}</td>
                <td>
                  {attemptText(one)}
                  {isFenced(one) && (
                    <span class="fenced" title="A rule, whether one came or not: the job has a higher epoch since then">
                      {" "}
                      a result of epoch {one.jobEpoch} would be refused: STALE_EPOCH
                    </span>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function JsonBlock({ title, value }: { readonly title: string; readonly value: Json }) {
  const text = JSON.stringify(value, null, 2);
  const isLong = text.length > JSON_LETTERS_MAX;
  return (
    <section>
      <h3>{title}</h3>
      <pre class="theirs" tabIndex={0} aria-label={title}>
        {isLong
          ? `${text.slice(0, JSON_LETTERS_MAX)}\n… ${text.length - JSON_LETTERS_MAX} more letters: tenure job show`
          : text}
      </pre>
    </section>
  );
}

export function pairsText(pairs: Readonly<Record<string, string>>): string {
  return (
    Object.entries(pairs)
      .map(([name, value]) => `${name}=${value}`)
      .join(", ") || "-"
  );
}
