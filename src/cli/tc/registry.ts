// `tenure tc rm list|register|unregister`: which islands take part in transactions, and where each is reached. Every node registers itself while it
// runs; by hand an address is removed that nobody answers at any more.

import { isApiUrl } from "../../contract/api-url.ts";
import { TenureError } from "../../contract/errors.ts";
import type { BackendsView } from "../../client/index.ts";
import { callerOf, type Connection } from "../connection/connection.ts";
import type { Paint } from "../kit/colour.ts";
import { UsageError } from "../kit/flags.ts";
import { json, printable, table } from "../kit/output.ts";
import { printed, stdoutPaint } from "../kit/print.ts";
import { chosen } from "../kit/words.ts";
import { knownBy, secondsOrNull } from "./show.ts";

const HASH = /^[0-9a-f]{64}$/;
const CHANGES = ["register", "unregister"] as const;

export type RegistryStep =
  | { readonly what: "list" }
  | { readonly what: (typeof CHANGES)[number]; readonly backendHash: string; readonly endpoint: string };

export function registryStep(words: readonly string[]): RegistryStep {
  const what = chosen(words[0], ["list", ...CHANGES], "rm ");
  const [, hash, url, more] = words;
  if (what === "list") {
    if (hash !== undefined) throw new UsageError(`rm list takes no ${JSON.stringify(hash)}`);
    return { what };
  }
  if (hash === undefined || url === undefined || more !== undefined)
    throw new UsageError(`rm ${what} takes an island and a URL: tenure tc rm ${what} HASH URL`);
  if (!HASH.test(hash)) {
    throw new UsageError(
      `rm ${what} takes the backend_hash of an island, 64 hexadecimal digits, not ${JSON.stringify(hash)}`,
    );
  }
  if (!isApiUrl(url)) throw new UsageError(`rm ${what} takes http://host:port or https://host:port after the hash`);
  return { what, backendHash: hash, endpoint: new URL(url).origin };
}

export async function runRegistry(connection: Connection, step: RegistryStep): Promise<number> {
  const isJson = connection.output === "json";
  if (step.what === "list") {
    const view = await knownBy(connection).backends();
    return printed(isJson ? json(backendsObject(view)) : backendsTable(view, stdoutPaint()));
  }
  const { what, backendHash, endpoint } = step;
  const isThere = what === "register" || (await has(connection, step));
  const { endpoints } = await changed(connection, step);
  if (isJson) return printed(json({ backend_hash: backendHash, endpoints }));
  const now = endpoints.length === 0 ? "at no URL" : `at ${endpoints.map(printable).join(", ")}`;
  const done = isThere ? `${endpoint} is ${what}ed` : `${endpoint} was not registered for this island`;
  return printed(`${done}; the island is now reached ${now}\n`);
}

/** As the node that is asked shows it before: a mistyped URL is nothing that was done. Where it does not say, it is taken to be there. */
async function has(
  connection: Connection,
  { backendHash, endpoint }: Exclude<RegistryStep, { what: "list" }>,
): Promise<boolean> {
  try {
    const { backends } = await knownBy(connection).backends();
    return backends.some((one) => one.backendHash === backendHash && one.endpoints.includes(endpoint));
  } catch {
    return true;
  }
}

interface Changed {
  readonly endpoints: readonly string[];
}

/** Any node passes it on to the leader, so the next one is asked only where it certainly did not arrive. */
async function changed(
  connection: Connection,
  { what, backendHash, endpoint }: Exclude<RegistryStep, { what: "list" }>,
): Promise<Changed> {
  const caller = callerOf(connection);
  const body = { backend_hash: backendHash, endpoint };
  const failures: TenureError[] = [];
  for (const url of connection.urls) {
    try {
      return await caller.bodyOf(await caller.ask(url, { method: "POST", path: `/v1/tc/rm/${what}`, body }, {}));
    } catch (error) {
      if (!TenureError.is(error) || error.code !== "BACKEND_UNAVAILABLE") throw error;
      failures.push(error);
    }
  }
  const [first, ...others] = failures;
  if (first === undefined || others.length === 0) throw first ?? new UsageError("--url names no server");
  throw new TenureError("BACKEND_UNAVAILABLE", failures.map(({ message }) => message).join(" "), { cause: first });
}

function backendsObject({ backends, updatedAtUnix }: BackendsView): object {
  const list = backends.map(({ backendHash, endpoints }) => ({ backend_hash: backendHash, endpoints }));
  return { backends: list, updated_at: secondsOrNull(updatedAtUnix) };
}

function backendsTable({ backends }: BackendsView, paint: Paint): string {
  if (backends.length === 0) return "no island is registered\n";
  const rows = backends.flatMap(({ backendHash, endpoints }) => endpoints.map((endpoint) => [backendHash, endpoint]));
  return table(
    ["ISLAND (BACKEND HASH)", "URL"],
    rows.map((row) => row.map(printable)),
    paint,
  );
}
