// The dashboard as every node serves it: `/` and what that loads, from memory, to anybody. These files hold no data: the page
// asks the API for it, as every client does, with its user's key.
//
// The page may connect to this node and to the members that this node knows, so that it can go on when this one dies, and to
// nobody else; nothing of it may stand in another page. The other way round, the members' own pages are the only ones of
// another origin that may read this API: an exact match, no wildcard, no cookies.

import type { FastifyInstance } from "fastify";
import type { Cluster } from "../ports/cluster.ts";
import { passageOf } from "./traffic/passage.ts";

export interface WebFile {
  /** As it is asked for. "/" is the page itself. */
  readonly path: string;
  readonly contentType: string;
  readonly bytes: Uint8Array;
  /** The same, compressed. */
  readonly gzip: Uint8Array;
  /** With its quotes. */
  readonly etag: string;
  /** Its name changes with what is in it. */
  readonly isImmutable: boolean;
}

type Headers = Readonly<Record<string, string>>;
type Members = Pick<Cluster, "view">;

const YEAR_S = 31_536_000;
const PREFLIGHT_S = 600;
const EXPOSED = [
  "retry-after",
  "x-tenure-cluster",
  "x-tenure-node",
  "x-tenure-role",
  "x-tenure-leader-id",
  "x-tenure-leader-epoch",
  "x-tenure-applied",
  "x-tenure-staleness-ms",
].join(", ");

export function registerWeb(app: FastifyInstance, files: readonly WebFile[], cluster: Members): void {
  for (const file of files) {
    const is = { isWrite: false, isFenced: false, isOwnView: true, isForSites: false, isAlsoFor: [], isProbe: false };
    const about = { role: "public", forIdentities: null, operation: null, limited: null, ...is } as const;
    app.route({
      method: "GET",
      url: file.path,
      // One name for all assets: theirs change with each build, and metrics are to stay few.
      config: { registered: { name: file.isImmutable ? "GET /assets" : `GET ${file.path}`, ...about } },
      handler: async (request, reply) => {
        const passage = passageOf(request);
        if (passage !== null) passage.isBegun = true;
        void reply.headers(fileHeaders(file, cluster));
        if (request.headers["if-none-match"] === file.etag) return await reply.code(304).send();
        const isZipped = /\bgzip\b/.test(request.headers["accept-encoding"] ?? "");
        if (isZipped) void reply.header("content-encoding", "gzip");
        return await reply.type(file.contentType).send(isZipped ? file.gzip : file.bytes);
      },
    });
  }
}

function fileHeaders(file: WebFile, cluster: Members): Headers {
  return {
    etag: file.etag,
    vary: "accept-encoding",
    "cache-control": file.isImmutable ? `public, max-age=${YEAR_S}, immutable` : "no-cache",
    "content-security-policy": contentSecurityPolicy(originsOf(cluster)),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
  };
}

function contentSecurityPolicy(memberOrigins: readonly string[]): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    ["connect-src 'self'", ...memberOrigins].join(" "),
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join("; ");
}

/** What is added to an answer to a page of another origin: nothing, unless a member serves that page. */
export function crossOriginHeaders(origin: string | undefined, cluster: Members): Headers {
  if (origin === undefined || !originsOf(cluster).includes(origin)) return {};
  return { "access-control-allow-origin": origin, "access-control-expose-headers": EXPOSED, vary: "origin" };
}

/** To a browser that asks whether it may send what the page wants to send. */
export function preflightHeaders(origin: string | undefined, cluster: Members, methods: readonly string[]): Headers {
  const allowed = crossOriginHeaders(origin, cluster);
  if (Object.keys(allowed).length === 0) return {};
  return {
    ...allowed,
    "access-control-allow-methods": methods.join(", "),
    "access-control-allow-headers": "x-api-key, content-type, idempotency-key, last-event-id, x-tenure-event-point",
    "access-control-max-age": String(PREFLIGHT_S),
  };
}

/**
 * Whether a page that is none of ours has sent this. A browser says in `Origin` whose page it acts for; a certificate, and a
 * machine's own loopback, go along by themselves, so a stranger's page must not steer by them. Who is no browser sends none.
 */
export function isForeignPage(origin: string | undefined, host: string | undefined, cluster: Members): boolean {
  if (origin === undefined) return false;
  // Behind a proxy that speaks TLS the scheme is another one.
  const isOwn = URL.canParse(origin) && new URL(origin).host === host?.toLowerCase();
  return !isOwn && !originsOf(cluster).includes(origin);
}

/** `scheme://host:port` and nothing else, so that no member's URL can say more in a header than where it is. */
function originsOf(cluster: Members): string[] {
  const urls = cluster.view().members.flatMap(({ url }) => (url !== null && URL.canParse(url) ? [new URL(url)] : []));
  const web = urls.filter(({ protocol }) => protocol === "http:" || protocol === "https:");
  return [...new Set(web.map(({ origin }) => origin))];
}
