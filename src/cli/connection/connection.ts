// What `tenure cluster` and `tenure member` share: where the servers are, and with what one proves to be an operator.
// A key on the command line shows in the list of processes; the variables and the file do not. Flags go before variables, those
// before the client's file (client-file.ts), and that before the defaults.

import { KEY_BYTES_MAX } from "../../contract/limits.ts";
import { ERRORS, TenureError } from "../../core/kit/errors.ts";
import type { Caller } from "../../client/caller.ts";
import { callerWith, clientWith } from "../../client/client.ts";
import { type ClientHistory, historyWith } from "../../client/history.ts";
import type { Client, ClientFetch, ClientOptions, NodeAnswer } from "../../client/index.ts";
import { type ClientFile, readClientFile } from "./client-file.ts";
import { contentsOf, readTls, type TlsTexts } from "./tls.ts";
import { certificateFetch, trustTold } from "./transport.ts";
import { paintFor } from "../kit/colour.ts";
import { warningText } from "../kit/complaint.ts";
import { type ConnectionFlag, URL_DEFAULT } from "../kit/connection-help.ts";
import { oneOf, UsageError } from "../kit/flags.ts";
import { type Output, OUTPUTS } from "../kit/output.ts";
import { LEADER_WAIT_MS } from "../limits.ts";
import { warn } from "../kit/print.ts";

const DEFAULT = "default";

/** Everything that was confirmed before is in the answer: whoever asks after a change sees it. */
export const FRESH = { consistency: "linearizable" } as const;

export type ConnectionValues = Partial<Record<ConnectionFlag, string>>;
/** What a command line asks for, and of whom. */
export interface StepFlags<Step> {
  readonly step: Step;
  readonly connection: ConnectionValues;
}

type Environment = Readonly<Record<string, string | undefined>>;

export interface Connection {
  readonly urls: readonly string[];
  /** Nobody has named any server. */
  readonly isDefault: boolean;
  readonly key: string | undefined;
  /** The flag or variable that brought the key, or the client's file; null where there is none. */
  readonly keyFrom: string | null;
  readonly tls: TlsTexts | null;
  /** The same of the client certificate. */
  readonly certFrom: string | null;
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
  const isOwn = isFilesOwn(file, urlFrom, urls);
  const open = urls.find((url) => !url.startsWith("https://"));
  const asked = {
    environment,
    file,
    isUrlOfFile: urlFrom === "url",
    isFilesOwn: isOwn,
    open: open && shownUrl(open),
  };
  return {
    urls,
    isDefault: urlFrom === DEFAULT,
    ...keyOf(values.key, environment, isOwn ? file : null),
    ...readTls(values, asked),
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

/** The file's key and certificate are for the file's servers: to others they would be given away. */
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

/** `latest` is called for each request: certificates may be replaced while the client is in use. */
export function renewableClientOf(connection: Connection, latest: () => Connection): Client {
  const fetch = trustTold(certificateFetch(() => latest().tls ?? {}));
  return clientWith({ ...optionsOf(connection), ...(connection.tls === null ? {} : { fetch }) }, keyAdvice(connection));
}

/** For what the client itself does not offer. */
export function callerOf(connection: Connection): Caller {
  return callerWith(optionsOf(connection), keyAdvice(connection));
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
        warn(text);
      }
      isTold = true;
      throw error;
    }
  };
}

/** What the server calls X-API-Key or a client certificate, here. */
function keyAdvice({ keyFrom, certFrom }: Connection): string {
  if (keyFrom === null && certFrom !== null) return `Check what ${certFrom} names (\`tenure cert show\`).`;
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

function nonEmpty(text: string | undefined): string | undefined {
  return text === "" ? undefined : text;
}
