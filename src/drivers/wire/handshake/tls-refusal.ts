// What a failed TLS handshake of somebody who dialled us means.

import type { Refuse } from "./hello.ts";
import { HANDSHAKE_MS_MAX } from "../limits.ts";

/** Null: it only went away, which is no refusal. */
export function tlsRefusal(error: NodeJS.ErrnoException): Refuse | null {
  const code = error.code ?? "";
  if (code === "ECONNRESET" || code === "EPIPE") return null;
  if (code === "ERR_TLS_HANDSHAKE_TIMEOUT") {
    return { reason: "handshake-timeout", message: `no TLS handshake came within ${HANDSHAKE_MS_MAX} ms` };
  }
  if (/ALERT_(UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE)/.test(code)) {
    return { reason: "certificate", message: `it does not trust this node's certificate (${code})` };
  }
  if (/(WRONG_VERSION_NUMBER|HTTP_REQUEST|UNEXPECTED_MESSAGE|PACKET_LENGTH|BAD_RECORD_TYPE|RECORD)/.test(code)) {
    return { reason: "garbage", message: `it does not speak TLS (${code})` };
  }
  return { reason: "tls", message: `TLS failed (${code === "" ? error.message : code}); 1.3 is needed` };
}
