// `tenure cert revoke|revoked`: client certificates that the cluster lets in no more, one by one, without another authority. What
// is sent is the certificate's SHA-256, its identity and its end; its key is needed nowhere.

import { readFile } from "node:fs/promises";
import type { RevokedCertificateView } from "../../client/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { inspect } from "../../drivers/pki/index.ts";
import { systemClock } from "../../drivers/system/clock.ts";
import { clientOf, FRESH, type ConnectionValues, readConnection } from "../connection/connection.ts";
import { type Paint } from "../kit/colour.ts";
import { isoTime, json, printable, table } from "../kit/output.ts";
import { printed, stdoutPaint } from "../kit/print.ts";

export async function revoke(file: string, values: ConnectionValues): Promise<number> {
  const connection = await readConnection(values, process.env);
  const { nodeId, ...wanted } = await read(file);
  const client = clientOf(connection);
  if (nodeId !== null) refuseMember(file, nodeId, (await client.cluster()).members);
  const view = await client.certificates.revoke(wanted);
  const text = `${view.id}, the certificate ${view.sha256.slice(0, 16)}… that ends ${isoTime(view.notAfterMs)}, is let in no more`;
  return printed(connection.output === "json" ? json(certificateObject(view)) : `${printable(text)}\n`);
}

export async function revoked(values: ConnectionValues): Promise<number> {
  const connection = await readConnection(values, process.env);
  const found = await clientOf(connection).certificates.revoked(FRESH);
  return printed(
    connection.output === "json"
      ? json({ certificates: found.map(certificateObject) })
      : certificatesTable(found, stdoutPaint()),
  );
}

async function read(file: string) {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    const why = error.code === "ENOENT" ? "there is no such file" : error.message;
    throw new TenureError("CONFIG_INVALID", `${file} can't be read: ${why}.`, { cause: error });
  });
  const [certificate] = inspect(text, systemClock.wallMs());
  const { spiffeId, nodeId, fingerprint, notAfter, isCa } = certificate!;
  if (isCa)
    throw unfit(file, "it is an authority's: take it out of client_ca_file (docs/runbooks/cluster-certificates.md)");
  if (spiffeId === null) throw unfit(file, "it names nobody that a cluster would let in");
  return {
    nodeId,
    sha256: fingerprint.replaceAll(":", "").toLowerCase(),
    id: spiffeId,
    notAfterMs: notAfter.getTime(),
  };
}

/** Membership is one thing (decision 42). A server of another island, or one that was removed, is a caller as others are. */
function refuseMember(file: string, nodeId: string, members: readonly { readonly nodeId: string }[]): void {
  if (!members.some((member) => member.nodeId === nodeId)) return;
  const how = `take it out with tenure member remove ${nodeId}, and roll the authority where its key has leaked`;
  throw unfit(file, `it is that of node ${nodeId}, and members are not revoked: ${how}`);
}

function unfit(file: string, why: string): TenureError {
  return new TenureError("CERTIFICATE_INVALID", `${file}: ${why}.`);
}

function certificateObject({ sha256, id, notAfterMs, revokedAtMs, revokedBy }: RevokedCertificateView) {
  return {
    spiffe_id: id,
    sha256,
    not_after: isoTime(notAfterMs),
    revoked_at: isoTime(revokedAtMs),
    revoked_by: revokedBy,
  };
}

function certificatesTable(found: readonly RevokedCertificateView[], paint: Paint): string {
  const rows = found.map(({ id, sha256, notAfterMs, revokedAtMs, revokedBy }) =>
    [id, sha256, isoTime(notAfterMs), isoTime(revokedAtMs), revokedBy].map(printable),
  );
  return table(["IDENTITY", "SHA256", "ENDS", "REVOKED", "BY"], rows, paint);
}
