// `tenure tc announce|leave`: a node takes part among coordinators, or no more. Only the node itself may say so, by its own certificate: with another
// one the same requests are about that other node, and would remove or renew its place there.

import type { Caller } from "../../client/caller.ts";
import type { IslandsView } from "../../client/index.ts";
import { TenureError } from "../../contract/errors.ts";
import { callerOf, type Connection } from "../connection/connection.ts";
import { UsageError } from "../kit/flags.ts";
import { json, printable } from "../kit/output.ts";
import { printed } from "../kit/print.ts";
import { TC_LEAVE_LIMIT_MS } from "../limits.ts";
import { shownIdentity } from "./certificate.ts";

/** What both answer with: the members as that node lists them afterwards. */
interface Listed {
  readonly endpoints: readonly string[];
}

export async function announce(connection: Connection): Promise<number> {
  const { caller, url, self } = await ownNode("announce", connection);
  const request = { method: "POST", path: "/v1/tc/cluster/announce", body: { self_endpoint: self.endpoint } } as const;
  const { endpoints } = await caller.bodyOf<Listed>(await caller.ask(url, request, {}));
  return show(connection, self.identity, endpoints, "takes part again, and announces itself");
}

export async function leave(connection: Connection): Promise<number> {
  const { caller, url, self } = await ownNode("leave", connection);
  const request = { method: "POST", path: "/v1/tc/cluster/leave", body: {} } as const;
  // It ends when the others have removed it.
  const response = await caller.ask(url, request, { timeoutMs: TC_LEAVE_LIMIT_MS });
  const { endpoints } = await caller.bodyOf<Listed>(response);
  return show(connection, self.identity, endpoints, "takes part no more, until `tenure tc announce` or its next start");
}

function show({ output }: Connection, identity: string, endpoints: readonly string[], text: string): number {
  if (output === "json") return printed(json({ identity, endpoints }));
  return printed(`${identity} ${text}. Members: ${endpoints.map(printable).join(", ") || "none"}\n`);
}

interface OwnNode {
  readonly caller: Caller;
  readonly url: string;
  readonly self: IslandsView["self"];
}

/** The node at --url, which the certificate must be of. */
async function ownNode(verb: string, connection: Connection): Promise<OwnNode> {
  const [url = "", more] = connection.urls;
  if (more !== undefined) throw new UsageError(`${verb} takes one URL: that of the node whose certificate is shown`);
  const shown = shownIdentity(connection);
  if (shown?.kind !== "server") {
    const found = shown === null ? "none is shown" : `this one is of the ${shown.kind} ${shown.name}`;
    throw new UsageError(
      `${verb} takes the node's own server certificate, and ${found}: give --cert and --client-key (api.tls.cert_file and key_file of that node)`,
    );
  }
  const caller = callerOf(connection);
  const { self } = await caller.bodyOf<IslandsView>(await caller.ask(url, { method: "GET", path: "/v1/islands" }, {}));
  if (self.identity === shown.name) return { caller, url, self };
  throw new TenureError(
    "PERMISSION_DENIED",
    `The certificate is of the node ${shown.name}, and ${self.identity} answers at ${url}: nothing was done. A node leaves and comes back by its own certificate alone.`,
  );
}
