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
    meshHeads: ({ inTurn }) =>
      inTurn(async () => ({ body: { heads: await Promise.all(lines.lines().map((line) => lines.checkpoint(line))) } })),
    meshPages: ({ query, inTurn }) =>
      inTurn(async () => {
        const page = await lines.page(query.line, query.after);
        return { body: JSON.stringify({ page }), contentType: JSON_TYPE };
      }),
    meshConsistency: async ({ query }) => {
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
          own,
          sites: lines.sites(),
          links: shown(links),
        },
      };
    },
  };
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
