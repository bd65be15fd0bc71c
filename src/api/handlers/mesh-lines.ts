// The lines of a mesh, shown: heads, pages and proofs, as this node has them.

import type { MESH_LINES_ROUTES } from "../../contract/index.ts";
import { toSnake } from "../../contract/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { MeshLines } from "../../ports/mesh/lines.ts";
import type { MeshLinks } from "../../ports/mesh/links.ts";
import type { Handlers } from "./handler.ts";

type Ids = keyof typeof MESH_LINES_ROUTES;

const JSON_TYPE = "application/json; charset=utf-8";

/** `lines`: undefined where this site is standalone. */
export function meshLinesHandlers(lines: MeshLines | undefined, links: MeshLinks | undefined): Pick<Handlers, Ids> {
  if (lines === undefined) {
    const refuse = (): never => {
      throw standalone();
    };
    return {
      meshCheckpoint: refuse,
      meshHeads: refuse,
      meshPages: refuse,
      meshConsistency: refuse,
      meshSites: refuse,
    };
  }
  return {
    meshCheckpoint: async ({ query, inTurn }) => {
      const line = query.line ?? ownLine(lines);
      const body = await inTurn(() => lines.checkpoint(line));
      return { body, contentType: "text/plain; charset=utf-8" };
    },
    meshHeads: ({ inTurn }) => inTurn(async () => ({ body: { heads: await headsOf(lines) } })),
    meshPages: ({ query, inTurn }) =>
      inTurn(async () => {
        const page = await lines.page(query.line, query.after);
        return { body: JSON.stringify({ page }), contentType: JSON_TYPE };
      }),
    meshConsistency: async ({ query }) => {
      if (query.from > query.to) throw new TenureError("BAD_REQUEST", "from is above to.");
      const { fromRoot, root, path } = await lines.consistency(query.line, query.from, query.to);
      return { body: { fromRoot, root, path } };
    },
    meshSites: () => {
      const status = lines.status();
      const why = status.kind === "signing" ? null : status.why;
      const own = toSnake(lines.own());
      const gate = toSnake(lines.gate());
      return {
        body: {
          node_key: lines.publicKey,
          status: status.kind,
          why,
          gate,
          left_at: lines.leftAt(),
          own,
          sites: sitesShown(lines, links),
          links: shown(links),
        },
      };
    },
  };
}

/** Each with what is missing here of its line, how long ago it was heard itself (null where no link says it), and whether it is cut off. */
function sitesShown(lines: MeshLines, links: MeshLinks | undefined): object {
  const lacking = links?.lacking() ?? null;
  const views = links?.views() ?? [];
  const cutOff = links?.cutOff();
  return lines.sites().map((site) => {
    const cut = cutOff?.get(site.id);
    const heard = views.flatMap(({ controller, heardMsAgo }) =>
      controller === site.id && heardMsAgo !== null ? [heardMsAgo] : [],
    );
    const missing = site.line === null ? undefined : lacking?.get(site.line);
    return {
      ...(toSnake(site) as object),
      missing_events: lacking === null ? null : (missing?.events ?? 0),
      missing_ms: lacking === null ? null : Math.round(missing?.ms ?? 0),
      heard_ms_ago: heard.length === 0 ? (cut?.heardMsAgo ?? null) : Math.min(...heard),
      cut_off_ms: cut?.ms ?? null,
    };
  });
}

function shown(links: MeshLinks | undefined): object {
  return (links?.views() ?? []).map(({ blamed, ...view }) => ({ ...(toSnake(view) as object), blamed }));
}

function ownLine(lines: MeshLines): string {
  const own = lines.own();
  if (own !== null) return own.line;
  const status = lines.status();
  const why = status.kind === "signing" ? "" : ` (${status.why})`;
  throw new TenureError("NOT_FOUND", `This site has no line yet${why}.`);
}

/** Why there are no lines. */
export function standalone(): TenureError {
  const why =
    'This site is standalone: it shows no line to other sites. Set mode = "distributed" under [mesh] in its configuration, or start it with --mode distributed.';
  return new TenureError("MESH_DISABLED", why);
}

/** Without lines whose note nobody can sign now (an earlier generation whose keys are lost); where that leaves none, why. */
async function headsOf(lines: MeshLines): Promise<readonly string[]> {
  const made = await Promise.allSettled(lines.lines().map((line) => lines.checkpoint(line)));
  const heads = made.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  for (const one of made) {
    if (one.status === "rejected" && (heads.length === 0 || !isUnavailable(one.reason))) throw one.reason;
  }
  return heads;
}

function isUnavailable(error: unknown): boolean {
  return TenureError.is(error) && error.code === "BACKEND_UNAVAILABLE";
}
