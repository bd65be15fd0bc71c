// `fetch` over node:https, for an authority of one's own and for client certificates: the platform's takes neither.

import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { Readable } from "node:stream";
import type { ClientFetch } from "../client/index.ts";

export interface CertificateFiles {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** Redirects are answers like any other: nothing here follows one. */
export function certificateFetch(tls: CertificateFiles): ClientFetch {
  return (url, { method, headers, body, signal }) =>
    new Promise<Response>((resolve, reject) => {
      const sent = request(
        url,
        {
          ...tls,
          method: method ?? "GET",
          headers: headers as Record<string, string>,
          minVersion: "TLSv1.3",
          ...(signal === null || signal === undefined ? {} : { signal }),
        },
        (incoming) => resolve(responseOf(incoming)),
      );
      // The signal's own reason says whether it was a time limit; Node's error does not.
      sent.once("error", (error) => reject(signal?.aborted === true ? (signal.reason as Error) : error));
      sent.end(typeof body === "string" ? body : undefined);
    });
}

function responseOf(incoming: IncomingMessage): Response {
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  const status = incoming.statusCode ?? 0;
  const isEmpty = status === 204 || status === 304;
  if (isEmpty) incoming.resume();
  return new Response(isEmpty ? null : (Readable.toWeb(incoming) as ReadableStream<Uint8Array>), { status, headers });
}
