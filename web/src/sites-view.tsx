// The sites of the mesh: how they are linked, their jobs in one list, and their events as they arrive. All of it is what this site knows, read
// from its own nodes: the page never connects to another site.

import { signal } from "@preact/signals";
import { useLoaded } from "./load.ts";
import { MeshEvents } from "./mesh-events-view.tsx";
import { MeshJobs } from "./mesh-jobs-view.tsx";
import { read, reader, readLeader } from "./nodes.ts";
import { now } from "./page.ts";
import { Badge, Columns, Failed } from "./parts.tsx";
import { ApiError } from "./request.ts";
import { lagText, linkText, missingText, type Link, type Site, type SitesAnswer, sitesOf } from "./sites.ts";
import { SitesGraph } from "./sites-graph.tsx";
import { ago, count, duration, type Tone } from "./words.ts";

/** Says how to switch it on; null: it is on, or nobody has answered yet. */
const standalone = signal<string | null>(null);
reader.subscribe(() => (standalone.value = null));

export function SitesPage() {
  if (standalone.value !== null) {
    return (
      <section aria-labelledby="sites-title">
        <h2 id="sites-title">Sites</h2>
        <p class="hint empty">{standalone.value}</p>
      </section>
    );
  }
  return <Sites />;
}

async function sitesNow(
  signal_: AbortSignal,
): Promise<{ readonly answer: SitesAnswer; readonly sites: readonly Site[] }> {
  try {
    const [answer, { heads }] = await Promise.all([
      readLeader<SitesAnswer>("/v1/mesh/sites", signal_),
      read<{ readonly heads: readonly string[] }>("/v1/mesh/heads", signal_),
    ]);
    return { answer, sites: sitesOf(answer, heads) };
  } catch (error) {
    if (error instanceof ApiError && error.code === "MESH_DISABLED") standalone.value = error.message;
    throw error;
  }
}

function Sites() {
  const { data, error } = useLoaded("sites", sitesNow, now);
  return (
    <>
      <section aria-labelledby="sites-title">
        <h2 id="sites-title">Sites</h2>
        <Failed error={error} />
        {data === undefined ? (
          error === null && <p class="hint">Asking…</p>
        ) : (
          <>
            {data.answer.why !== null && <p class="hint">This node signs nothing yet: {data.answer.why}</p>}
            <SitesGraph sites={data.sites} />
            <p class="hint">
              An arrow leads from the site that dialled. Only this site's own links are drawn: what other sites have
              between them is not known here.
            </p>
            <LinksTable sites={data.sites} />
          </>
        )}
      </section>
      <MeshJobs sites={data?.sites ?? []} />
      <MeshEvents sites={data?.sites ?? []} />
    </>
  );
}

function LinksTable({ sites }: { readonly sites: readonly Site[] }) {
  return (
    <div class="scroll">
      <table id="sites">
        <Columns
          names={[
            "Site",
            "Name",
            "Status",
            "Events here",
            "Last event",
            "Missing",
            "Link",
            "Round trip",
            "Lag",
            "Heard",
            "About",
          ]}
        />
        <tbody>
          {sites.flatMap((site) =>
            site.links.length === 0
              ? [<SiteRow key={site.id} site={site} link={null} />]
              : site.links.map((link) => (
                  <SiteRow key={`${site.id} ${link.direction} ${link.url}`} site={site} link={link} />
                )),
          )}
        </tbody>
      </table>
    </div>
  );
}

const TONES: Readonly<Record<string, Tone>> = {
  own: "good",
  registered: "good",
  approved: "good",
  expired: "busy",
  left: "plain",
  evicted: "bad",
  forked: "bad",
};

/** Cut off it is still registered, and not in order. */
function isTaken({ status }: Site): boolean {
  return TONES[status] === "good";
}

function SiteRow({ site, link }: { readonly site: Site; readonly link: Link | null }) {
  return (
    <tr>
      <th scope="row" class="theirs">
        {site.url === null ? (
          site.id
        ) : (
          <a href={site.url} rel="noreferrer">
            {site.id}
          </a>
        )}
      </th>
      <td>
        <span class="theirs">{site.name}</span>
      </td>
      <td>
        <Badge tone={site.isCutOff && isTaken(site) ? "busy" : (TONES[site.status] ?? "plain")} text={site.status} />
      </td>
      <td>{site.events === null ? "-" : count(site.events)}</td>
      <td title="by that site's clock">{site.lastEventAtMs === null ? "-" : ago(site.lastEventAtMs, now.value)}</td>
      <td>{missingText(site)}</td>
      <td>{link === null ? site.isOwn ? "-" : "none" : <LinkBadge link={link} />}</td>
      <td>{link === null || link.roundTripMs === null ? "-" : duration(link.roundTripMs)}</td>
      <td>{link === null || link.state !== "live" ? "-" : lagText(link)}</td>
      <td>{link === null || link.heardMsAgo === null ? "-" : `${duration(link.heardMsAgo)} ago`}</td>
      <td class="theirs about">{aboutOf(site, link)}</td>
    </tr>
  );
}

const LINK_TONES: Readonly<Record<Link["state"], Tone>> = { live: "good", stale: "busy", down: "bad" };

function LinkBadge({ link }: { readonly link: Link }) {
  const words = { live: "linked", stale: "silent", down: linkText(link) } as const;
  const who = link.direction === "dialled" ? "dialled from here" : "dialled by it";
  return (
    <>
      <Badge tone={LINK_TONES[link.state]} text={words[link.state]} /> <span class="hint">{who}</span>
    </>
  );
}

function aboutOf({ isOwn, links }: Site, link: Link | null): string {
  if (link === null)
    return isOwn ? "this site" : links.length === 0 ? "its events come through other sites, if at all" : "-";
  const blamed = Object.entries(link.blamed).map(([reason, times]) => `${reason} ${times}×`);
  const ended =
    link.state === "down" && link.url === null ? "its link here has ended, and it has not dialled again" : "";
  return [link.problem ?? ended, ...blamed].filter((text) => text !== "").join("; ") || "-";
}
