// The jobs of all sites in one list, the newest here first, with the site of each and how old what is shown may be.

import { meshJobsPath } from "./address.ts";
import type { JobState } from "../../src/client/index.ts";
import { HeldTable } from "./held-table.tsx";
import { useLoaded } from "./load.ts";
import { read } from "./nodes.ts";
import { address, go, now } from "./page.ts";
import { Badge, Columns, Failed, Link } from "./parts.tsx";
import type { Site } from "./sites.ts";
import { Typed } from "./typed.tsx";
import { ago, duration, fullTime, toneOf } from "./words.ts";

const PAGE_SIZE = 12;
/** What is older is not of this moment: its site is cut off, or silent. */
const OLD_MS = 5_000;

interface MeshJob {
  readonly id: string;
  readonly site: string;
  readonly lineState: "sound" | "forked" | "evicted";
  readonly ageMs: number;
  readonly state: JobState;
  readonly isLost: boolean;
  readonly claims: number;
  readonly kind: string | null;
  readonly queue: string | null;
  readonly agent: string | null;
  readonly submittedAtMs: number | null;
  readonly errorMessage: string | null;
}

interface JobsAnswer {
  readonly jobs: readonly MeshJob[];
  readonly next: string | null;
}

export function MeshJobs({ sites }: { readonly sites: readonly Site[] }) {
  const path = meshJobsPath(address.value, PAGE_SIZE);
  const { data, error, isStale } = useLoaded(path, (signal) => read<JobsAnswer>(path, signal), now);
  const { search, cursor } = address.value;
  return (
    <section aria-labelledby="mesh-jobs-title">
      <h2 id="mesh-jobs-title">Jobs of all sites</h2>
      <form class="filters" role="search" aria-label="Jobs of all sites" onSubmit={(event) => event.preventDefault()}>
        <Typed name="search" label="Words" value={search} />
        <SiteChoice sites={sites} />
      </form>
      <Failed error={error} />
      {data === undefined ? (
        error === null && <p class="hint">Asking…</p>
      ) : (
        <HeldTable
          key={path}
          rows={data.jobs}
          isStale={isStale}
          pageSize={PAGE_SIZE}
          draw={(jobs) => <Table jobs={jobs} sites={sites} isStale={isStale} />}
        />
      )}
      <nav class="row" aria-label="Pages">
        {cursor !== "" && <Link to={{ cursor: "" }}>Newest</Link>}
        {data !== undefined && data.next !== null && <Link to={{ cursor: data.next }}>Older</Link>}
      </nav>
    </section>
  );
}

/** Of jobs and events alike. */
export function SiteChoice({ sites }: { readonly sites: readonly Site[] }) {
  const { site } = address.value;
  // One that the URL names stays chosen while nobody has said which there are.
  const ids = [...new Set([...sites.map(({ id }) => id), ...(site === "" ? [] : [site])])].toSorted();
  return (
    <label class="field">
      <span>Site</span>
      <select name="site" value={site} onChange={(event) => go({ site: event.currentTarget.value, cursor: "" })}>
        <option value="">all</option>
        {ids.map((id) => (
          <option key={id} value={id}>
            {id}
          </option>
        ))}
      </select>
    </label>
  );
}

interface TableProps {
  readonly jobs: readonly MeshJob[];
  readonly sites: readonly Site[];
  readonly isStale: boolean;
}

function Table({ jobs, sites, isStale }: TableProps) {
  if (jobs.length === 0) return <p class="hint empty">No job fits.</p>;
  return (
    <div class={`scroll ${isStale ? "stale" : ""}`}>
      <table id="mesh-jobs">
        <Columns names={["Job", "Site", "Kind", "State", "Queue", "Agent", "Submitted", "Known as of", "About"]} />
        <tbody>
          {jobs.map((job) => (
            <Row key={job.id} job={job} site={sites.find(({ id }) => id === job.site)} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({ job, site }: { readonly job: MeshJob; readonly site: Site | undefined }) {
  return (
    <tr>
      <th scope="row">
        <JobLink id={job.id} site={site} />
      </th>
      <td>
        <span class="theirs">{job.site}</span> {job.lineState !== "sound" && <Badge tone="bad" text={job.lineState} />}
      </td>
      <td>
        <span class="theirs">{job.kind ?? "-"}</span>
      </td>
      <td>
        <Badge tone={toneOf(job.state)} text={job.state} />
      </td>
      <td>
        <span class="theirs">{job.queue ?? "-"}</span>
      </td>
      <td>
        <span class="theirs">{job.agent ?? "-"}</span>
      </td>
      <td {...(job.submittedAtMs === null ? {} : { title: fullTime(job.submittedAtMs) })}>
        {job.submittedAtMs === null ? "-" : ago(job.submittedAtMs, now.value)}
      </td>
      <td>
        <Age ageMs={job.ageMs} isLinked={site === undefined || site.isOwn || site.links.length > 0} />
      </td>
      <td class="theirs about">{aboutOf(job)}</td>
    </tr>
  );
}

/** Of a site that this one has no link to only the last event is known: it may have nothing to say. */
function Age({ ageMs, isLinked }: { readonly ageMs: number; readonly isLinked: boolean }) {
  if (ageMs < OLD_MS) return <>now</>;
  if (isLinked) return <Badge tone="busy" text={`${duration(ageMs)} ago`} />;
  return <span class="hint">last event {duration(ageMs)} ago</span>;
}

/** The whole job is at its own site: this site's page has its own, another's is opened there. */
function JobLink({ id, site }: { readonly id: string; readonly site: Site | undefined }) {
  if (site?.isOwn === true) {
    return (
      <Link to={{ view: "jobs", job: id, cursor: "" }} class="id">
        {id}
      </Link>
    );
  }
  if (site === undefined || site.url === null) return <span class="id">{id}</span>;
  return (
    <a class="id" rel="noreferrer" href={`${site.url}/?view=jobs&job=${encodeURIComponent(id)}`}>
      {id}
    </a>
  );
}

function aboutOf({ isLost, claims, errorMessage }: MeshJob): string {
  const parts = [
    isLost ? "its site does not know it any more" : "",
    claims > 1 ? `claimed by ${claims} sites` : "",
    errorMessage ?? "",
  ];
  return parts.filter((text) => text !== "").join("; ") || "-";
}
