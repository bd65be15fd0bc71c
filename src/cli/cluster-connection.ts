// What `tenure cluster` and `tenure member` share: where the servers are, and with what one proves to be an operator.
// A key on the command line shows in the list of processes; the variables and the file do not. Flags go before variables, those
// before the client's file (cluster-client-file.ts), and that before the defaults.

import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { ERRORS, TenureError } from "../core/kit/errors.ts";
import { clientWith } from "../client/client.ts";
import { type ClientHistory, historyWith } from "../client/history.ts";
import type { Client, ClientFetch, ClientOptions, NodeAnswer } from "../client/index.ts";
import { type ClientFile, readClientFile } from "./cluster-client-file.ts";
import { certificateFetch, trustTold } from "./cluster-transport.ts";
import { paintFor } from "./colour.ts";
import { warningText } from "./complaint.ts";
import { oneOf, UsageError } from "./flags.ts";
import { type Output, OUTPUTS } from "./output.ts";

/** Where a server listens that was told nothing else (SERVER_DEFAULTS of contract/; a test compares). */
export const URL_DEFAULT = "http://127.0.0.1:7401";
/** An election takes less than a second: whoever waits at a terminal is told after this. */
const LEADER_WAIT_MS = 3_000;
const DEFAULT = "default";
const KEY_BYTES_MAX = 4 * 1024;

export const CONNECTION_HELP = `  --url URL[,URL…]   any of the servers, better all (or TENURE_URL; default ${URL_DEFAULT})
  --key KEY          the API key (better TENURE_API_KEY, or TENURE_API_KEY_FILE with a file that holds it)
  --ca FILE          the authority that signed the servers' certificates, as PEM
  --cert FILE        a client certificate, as PEM; with --client-key, instead of a key
  --client-key FILE  its private key, as PEM
  -o table|json      for people (default), or one JSON object on a line; --json is -o json
  --help             this text

Without flags and variables, ~/.config/tenure/config.toml counts, or the file that TENURE_CONFIG names: url, key or key_file,
ca_file, output (\`tenure config show --client\`).
`;

export const CONNECTION_KINDS = {
  url: "value",
  key: "value",
  ca: "value",
  cert: "value",
  "client-key": "value",
  output: "value",
  help: "switch",
} as const;

export type ConnectionValues = Partial<Record<keyof typeof CONNECTION_KINDS, string>>;
type Environment = Readonly<Record<string, string | undefined>>;

export interface Connection {
  readonly urls: readonly string[];
  /** Nobody has named any server. */
  readonly isDefault: boolean;
  readonly key: string | undefined;
  /** The flag or variable that brought the key, or the client's file; null where there is none. */
  readonly keyFrom: string | null;
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string } | null;
  readonly output: Output;
}

/** `outputs`: what `-o` may be; of what may be many, LIST_OUTPUTS. */
export async function readConnection(
  values: ConnectionValues,
  environment: Environment,
  outputs: readonly Output[] = OUTPUTS,
): Promise<Connection> {
  const file = await readClientFile(environment);
  for (const warning of file?.warnings ?? []) {
    process.stderr.write(warningText(warning, paintFor(process.stderr, environment)));
  }
  const { urls, urlFrom } = urlsOf(values.url, environment, file);
  const { cert, "client-key": clientKey } = values;
  const ca = values.ca ?? caOf(file, urlFrom, urls);
  if ((cert === undefined) !== (clientKey === undefined)) {
    throw new UsageError(`--${cert === undefined ? "client-key needs --cert" : "cert needs --client-key"} beside it`);
  }
  const hasTls = ca !== undefined || cert !== undefined;
  const open = urls.find((url) => !url.startsWith("https://"));
  if (hasTls && open !== undefined) {
    throw new UsageError(`--ca and --cert are for https:// URLs, and ${shownUrl(open)} is none`);
  }
  const tls = {
    ...(ca === undefined ? {} : { ca: contentsOf(values.ca === undefined ? "ca_file" : "--ca", ca) }),
    ...(cert === undefined ? {} : { cert: contentsOf("--cert", cert) }),
    ...(clientKey === undefined ? {} : { key: contentsOf("--client-key", clientKey) }),
  };
  if (hasTls) refuseUnusable(tls, ca === undefined ? values : { ...values, ca });
  return {
    urls,
    isDefault: urlFrom === DEFAULT,
    ...keyOf(values.key, environment, isFilesOwn(file, urlFrom, urls) ? file : null),
    tls: hasTls ? tls : null,
    output: oneOf("-o", values.output ?? usualOutput(file, outputs), outputs),
  };
}

function urlsOf(flag: string | undefined, environment: Environment, file: ClientFile | null) {
  const said = file?.says.url;
  const places: readonly [string | undefined, string][] = [
    [flag, "--url"],
    [nonEmpty(environment["TENURE_URL"]), "TENURE_URL"],
    [Array.isArray(said) ? said.join(",") : said, "url"],
  ];
  const [text = URL_DEFAULT, urlFrom] = places.find(([one]) => one !== undefined) ?? [URL_DEFAULT, DEFAULT];
  const urls = text.split(",").map((url) => url.trim());
  if (urls.some((url) => url === ""))
    throw new UsageError(`${urlFrom} has an empty place between its commas: ${shownUrl(text)}`);
  const wrong = urls.find((url) => !/^https?:$/.test(URL.parse(url)?.protocol ?? ""));
  if (wrong !== undefined) {
    throw new UsageError(
      `${urlFrom} takes http://host:port or https://host:port, or several with commas between, not ${shownUrl(wrong)}`,
    );
  }
  return { urls, urlFrom };
}

/** There may be a password in front of an @. */
function shownUrl(url: string): string {
  return url.includes("@") ? `a text of ${url.length} characters` : JSON.stringify(url);
}

/** The file's authority is for the file's servers; other servers that are given without TLS have no use for it. */
function caOf(file: ClientFile | null, urlFrom: string, urls: readonly string[]): string | undefined {
  const ca = file?.says.ca_file;
  if (file === null || ca === undefined) return undefined;
  if (urls.every((url) => url.startsWith("https://"))) return file.pathOf(ca);
  if (urlFrom !== "url") return undefined;
  throw new TenureError("CONFIG_INVALID", `${file.path}: ca_file is for https:// URLs, and one of url is not.`);
}

/** The file's key is for the file's servers: to others it would be given away. */
function isFilesOwn(file: ClientFile | null, urlFrom: string, urls: readonly string[]): boolean {
  const said = file?.says.url;
  if (urlFrom === "url" || said === undefined) return true;
  const own = Array.isArray(said) ? said : said.split(",").map((url) => url.trim());
  return urls.every((url) => own.includes(url));
}

/** The file's `jsonl` is for lists; a command that prints one object prints it as JSON. */
function usualOutput(file: ClientFile | null, outputs: readonly Output[]): Output {
  const output = file?.says.output ?? "table";
  return outputs.includes(output) ? output : "json";
}

/** Here, and not at the first connection: what a server would be said to refuse is wrong on this machine. */
function refuseUnusable(tls: NonNullable<Connection["tls"]>, { ca, cert, "client-key": key }: ConnectionValues): void {
  try {
    createSecureContext(tls);
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    const text =
      code === "ERR_OSSL_X509_KEY_VALUES_MISMATCH"
        ? `--client-key ${key} is not the key of --cert ${cert}. Give the two that were issued together (\`tenure cert show\`).`
        : `${listed({ "--ca": ca, "--cert": cert, "--client-key": key })} can't be used: ${message}. They are PEM files.`;
    throw new TenureError("CERTIFICATE_INVALID", text, { cause: error });
  }
}

function listed(files: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(files).filter(([, file]) => file !== undefined);
  return given.map(([flag, file]) => `${flag} ${file}`).join(", ");
}

/** Where no server gave its view, and one that answers lets nobody in, or is not trusted: that is not "down". */
export function refuseStrangers(answers: readonly NodeAnswer[]): void {
  if (answers.some(({ view }) => view !== null)) return;
  for (const { url, code, why } of answers) {
    if (code !== null && !ERRORS[code].retryable) throw new TenureError(code, `${url}: ${why}`);
  }
}

export function clientOf(connection: Connection, timeoutMs?: number): Client {
  return clientWith({ ...optionsOf(connection), timeoutMs }, keyAdvice(connection));
}

/** `urls`: the nodes that are asked about their own copy, as `Client.nodes` found them. */
export function historyOf(connection: Connection, urls: readonly string[]): ClientHistory {
  return historyWith({ ...optionsOf(connection), urls }, keyAdvice(connection));
}

function optionsOf({ urls, isDefault, key, tls }: Connection): ClientOptions {
  const told = trustTold(tls === null ? (url, init) => fetch(url, init) : certificateFetch(tls));
  return { urls, key, leaderWaitMs: LEADER_WAIT_MS, fetch: isDefault ? defaultTold(told) : told };
}

/** Once, where nothing listens at the address that nobody has chosen. */
function defaultTold(fetch: ClientFetch): ClientFetch {
  let isTold = false;
  return async (url, init) => {
    try {
      return await fetch(url, init);
    } catch (error) {
      if (!isTold && init.signal?.aborted !== true) {
        const text = `${URL_DEFAULT} is the default, and does not answer. Name your servers with --url or TENURE_URL.`;
        process.stderr.write(warningText(text, paintFor(process.stderr, process.env)));
      }
      isTold = true;
      throw error;
    }
  };
}

/** What the server calls X-API-Key or a client certificate, here. */
function keyAdvice({ keyFrom, tls }: Connection): string {
  if (keyFrom === null && tls?.cert !== undefined) return "Check what --cert names (`tenure cert show`).";
  return keyFrom === null
    ? "Name a file that holds the key in TENURE_API_KEY_FILE, or give it with TENURE_API_KEY or --key; or a client certificate with --cert and --client-key."
    : `The key came from ${keyFrom}: give one that this cluster knows, or ask its operator for one (\`tenure key create\`).`;
}

function keyOf(
  flag: string | undefined,
  environment: Environment,
  clientFile: ClientFile | null,
): Pick<Connection, "key" | "keyFrom"> {
  if (flag !== undefined) return { key: flag, keyFrom: "--key" };
  const key = nonEmpty(environment["TENURE_API_KEY"]);
  if (key !== undefined) return { key, keyFrom: "TENURE_API_KEY" };
  const file = nonEmpty(environment["TENURE_API_KEY_FILE"]);
  if (file !== undefined) return { key: keyIn("TENURE_API_KEY_FILE", file), keyFrom: "TENURE_API_KEY_FILE" };
  if (clientFile === null) return { key: undefined, keyFrom: null };
  const { path, says, pathOf } = clientFile;
  if (says.key !== undefined) return { key: says.key, keyFrom: `key in ${path}` };
  if (says.key_file === undefined) return { key: undefined, keyFrom: null };
  return { key: keyIn("key_file", pathOf(says.key_file)), keyFrom: `key_file in ${path}` };
}

function keyIn(name: string, file: string): string {
  const text = contentsOf(name, file).trim();
  if (text !== "" && text.length <= KEY_BYTES_MAX && !/\s/.test(text)) return text;
  const found = text === "" ? "nothing" : /\s/.test(text) ? "several words" : `${text.length} characters`;
  throw new TenureError("CONFIG_INVALID", `${name}: ${file} must hold one key and nothing else, found ${found}.`);
}

function contentsOf(flag: string, file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code === "ENOENT" ? "there is no such file" : (error as Error).message;
    throw new TenureError("CONFIG_INVALID", `${flag}: can't read ${file}: ${why}.`, { cause: error });
  }
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === "" ? undefined : text;
}
