// The list of jobs, newest first, a page at a time. What is searched for is in the URL, so that it can be sent to
// somebody; the list follows the events while the newest page is shown.

import type { JobBrief, JobState } from "../../src/client/index.ts";
import { JOB_STATES } from "../../src/core/jobs/model.ts";
import { jobsPath } from "./address.ts";
import { changes } from "./events.ts";
import { HeldTable } from "./held-table.tsx";
import { JobPage } from "./job-view.tsx";
import { useLoaded } from "./load.ts";
import { read } from "./nodes.ts";
import { address, go, now } from "./page.ts";
import { Badge, Columns, Failed, Link } from "./parts.tsx";
import { Typed } from "./typed.tsx";
import { ago, fullTime, toneOf } from "./words.ts";

const PAGE_SIZE = 50;

interface JobsAnswer {
  readonly jobs: readonly JobBrief[];
  readonly next: string | null;
}

export function JobsPage() {
  const { job } = address.value;
  return job === "" ? <JobList /> : <JobPage key={job} id={job} />;
}

function JobList() {
  const path = jobsPath(address.value, PAGE_SIZE);
  const { data, error, isStale } = useLoaded(path, (signal) => read<JobsAnswer>(path, signal), changes.build);
  const { cursor } = address.value;
  return (
    <section aria-labelledby="jobs-title">
      <h2 id="jobs-title">Jobs</h2>
      <Filters />
      <Failed error={error} />
      {data === undefined ? (
        error === null && <p class="hint">Asking…</p>
      ) : (
        <HeldTable
          key={path}
          rows={data.jobs}
          isStale={isStale}
          pageSize={PAGE_SIZE}
          draw={(jobs) => <Table jobs={jobs} isStale={isStale} />}
        />
      )}
      <nav class="row" aria-label="Pages">
        {cursor !== "" && <Link to={{ cursor: "" }}>Newest</Link>}
        {data !== undefined && data.next !== null && <Link to={{ cursor: data.next }}>Older</Link>}
      </nav>
    </section>
  );
}

function Filters() {
  const { states, kind, queue, search } = address.value;
  const toggle = (state: JobState): void =>
    go({ cursor: "", states: states.includes(state) ? states.filter((one) => one !== state) : [...states, state] });
  const isFiltered = states.length > 0 || kind !== "" || queue !== "" || search !== "";
  return (
    <form class="filters" role="search" aria-label="Jobs" onSubmit={(event) => event.preventDefault()}>
      <Typed name="search" label="Words" value={search} />
      <Typed name="kind" label="Kind" value={kind} />
      <Typed name="queue" label="Queue" value={queue} />
      <fieldset>
        <legend>State</legend>
        <div class="row">
          {JOB_STATES.map((state) => (
            <label key={state} class="check">
              <input type="checkbox" checked={states.includes(state)} onChange={() => toggle(state)} />
              {state}
            </label>
          ))}
        </div>
      </fieldset>
      {isFiltered && (
        <button
          type="button"
          class="quiet"
          onClick={() => go({ states: [], kind: "", queue: "", search: "", cursor: "" })}
        >
          Show all
        </button>
      )}
    </form>
  );
}

interface TableProps {
  readonly jobs: readonly JobBrief[];
  /** They are the answer to the question before. */
  readonly isStale: boolean;
}

function Table({ jobs, isStale }: TableProps) {
  if (jobs.length === 0) return <p class="hint empty">No job fits. Submit one: tenure job submit -- echo hello</p>;
  return (
    <div class={`scroll ${isStale ? "stale" : ""}`}>
      <table id="jobs">
        <Columns names={["Job", "Kind", "State", "Queue", "Job epoch", "Agent", "Submitted", "About"]} />
        <tbody>
          {jobs.map((job) => (
            <tr key={job.id}>
              <th scope="row">
                <Link to={{ job: job.id }} class="id">
                  {job.id}
                </Link>
              </th>
              <td>
                <span class="theirs">{job.kind}</span>
              </td>
              <td>
                <Badge tone={toneOf(job.state)} text={job.state} />
              </td>
              <td>
                <span class="theirs">{job.queue}</span>
              </td>
              <td>{job.jobEpoch}</td>
              <td>
                <span class="theirs">{job.agent ?? "-"}</span>
              </td>
              <td title={fullTime(job.submittedAtMs)}>{ago(job.submittedAtMs, now.value)}</td>
              <td class="theirs about">{aboutOf(job)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function aboutOf({ state, errorMessage, progress, readyAtMs, losses }: JobBrief): string {
  const waits =
    state === "pending" && readyAtMs > now.value
      ? `not for another ${ago(readyAtMs, now.value).replace("in ", "")}`
      : "";
  const share = progress?.share === null || progress === null ? "" : `${Math.floor(progress.share * 100)} %`;
  const lost = losses > 0 ? `lost ${losses}×` : "";
  return (
    [waits, share, progress?.message ?? "", lost, errorMessage ?? ""].filter((text) => text !== "").join("; ") || "-"
  );
}
