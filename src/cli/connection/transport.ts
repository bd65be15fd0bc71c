// `fetch` over node:https, for an authority of one's own and for client certificates: the platform's takes neither.

import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { Readable } from "node:stream";
import type { ClientFetch } from "../../client/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { isUntrusted } from "../../drivers/http/index.ts";
import { STATUS_MAX, STATUS_MIN } from "../limits.ts";

/**
 * A server whose certificate is not trusted was not asked anything, and another try changes nothing: that is a matter of the
 * flags, and says so.
 */
export function trustTold(fetch: ClientFetch): ClientFetch {
  return async (url, init) => {
    try {
      return await fetch(url, init);
    } catch (error) {
      const cause = [error, (error as Error).cause].find((one) => isUntrusted(one)) as Error | undefined;
      if (cause === undefined) throw error;
      const text = `the server's certificate is not trusted (${cause.message}). Give the authority that signed it with --ca FILE (\`tenure cert issue\` puts it as ca.crt beside each certificate), and check that the certificate names this host`;
      throw new TenureError("CERTIFICATE_INVALID", text, { cause: error });
    }
  };
}

export interface CertificateFiles {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** Redirects are answers like any other: nothing here follows one. `tls` may be a function: it is called for each request. */
export function certificateFetch(tls: CertificateFiles | (() => CertificateFiles)): ClientFetch {
  return (url, { method, headers, body, signal }) =>
    new Promise<Response>((resolve, reject) => {
      const sent = request(
        url,
        {
          ...(typeof tls === "function" ? tls() : tls),
          method: method ?? "GET",
          headers: headers as Record<string, string>,
          minVersion: "TLSv1.3",
          ...(signal === null || signal === undefined ? {} : { signal }),
        },
        (incoming) => {
          // Thrown here, it would end the process.
          try {
            resolve(responseOf(incoming, url));
          } catch (error) {
            incoming.destroy();
            reject(error instanceof Error ? error : new Error(String(error)));
          }
        },
      );
      sent.once("upgrade", (_incoming, socket) => {
        socket.destroy();
        reject(new Error("it answered 101, and nobody asked for another protocol"));
      });
      // The signal's own reason says whether it was a time limit; Node's error does not.
      sent.once("error", (error) => reject(signal?.aborted === true ? (signal.reason as Error) : error));
      sent.end(typeof body === "string" ? body : undefined);
    });
}

/** Those that have no body, and the only ones that a `Response` takes. */
const EMPTY_STATUSES: readonly number[] = [204, 205, 304];

/** Throws for what is no answer. */
function responseOf(incoming: IncomingMessage, url: string): Response {
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  const status = incoming.statusCode ?? 0;
  if (status < STATUS_MIN || status > STATUS_MAX)
    throw new Error(`it answered with the status ${status}, which is none`);
  const isEmpty = EMPTY_STATUSES.includes(status);
  if (isEmpty) incoming.resume();
  const body = isEmpty ? null : (Readable.toWeb(incoming) as ReadableStream<Uint8Array>);
  // Its own is read-only, and empty: errors name the node by it.
  return Object.defineProperty(new Response(body, { status, headers }), "url", { value: url });
}
