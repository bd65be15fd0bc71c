// `tenure support bundle`: what to send along with a question, in one archive: status, elections, alerts, and of each node its
// metrics, its configuration without secrets and its last log lines.
//
// Made for bad days. Every question has a time limit and every answer a size limit; a node that is down or hangs is named with the
// reason, and the others are in the bundle. Nodes leave secrets out by themselves (server/node/diagnostics.ts); whatever has the form
// of one, and this command's own key, is hidden here once more.

import { CONNECTION_KINDS } from "../kit/connection-help.ts";
import { verbsOf } from "../kit/description.ts";
import { SUPPORT } from "./help.ts";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { TenureError } from "../../core/kit/errors.ts";
import type { NodeAnswer } from "../../client/index.ts";
import { systemClock } from "../../drivers/system/clock.ts";
import { callerOf, clientOf, type Connection, readConnection } from "../connection/connection.ts";
import { NewFile } from "../files/whole.ts";
import { bytesText, electionObject, electionsOf, statusObject, statusOf, statusText } from "../cluster/view.ts";
import { parseFlags, UsageError } from "../kit/flags.ts";
import { columns, json, withLongOutput } from "../kit/output.ts";
import { chosen } from "../kit/words.ts";
import { BUNDLED_BYTES_MAX, SUPPORT_ANSWER_MS } from "../limits.ts";
import { hider } from "./secrets.ts";
import { type TarFile, tarOf } from "./tar.ts";
import { printed } from "../kit/print.ts";

const VERBS = verbsOf(SUPPORT);

export async function support(args: readonly string[]): Promise<number> {
  const { values, words, rest } = parseFlags(withLongOutput(args), CONNECTION_KINDS);
  if (values.help !== undefined) return printed(SUPPORT.help);
  const [verb, named, more] = [...words, ...(rest ?? [])];
  chosen(verb, VERBS);
  if (more !== undefined) throw new UsageError("bundle takes one file");
  if (named === "") throw new UsageError("bundle takes a file, and its name is empty");
  const connection = await readConnection(values, process.env);
  const madeAt = new Date(systemClock.wallMs()).toISOString();
  const file = named ?? `tenure-support-${madeAt.replaceAll(/[-:]|\.\d+/g, "")}.tar.gz`;
  const target = await NewFile.open(file, false);
  try {
    const { files, nodes } = await collected(connection, madeAt);
    const bytes = await promisify(gzip)(tarOf(files, systemClock.wallMs() / 1_000));
    await target.write(bytes);
    await target.sync();
    await target.name();
    const object = { file, bytes: bytes.length, nodes };
    return printed(connection.output === "json" ? json(object) : textOf(object));
  } finally {
    await target.close();
  }
}

/** `null`: it is in the bundle; else why it is not. */
interface NodeReport {
  readonly node: string;
  readonly url: string;
  readonly status: string | null;
  readonly metrics: string | null;
  readonly diagnostics: string | null;
}

interface Collected {
  readonly files: readonly TarFile[];
  readonly nodes: readonly NodeReport[];
}

async function collected(connection: Connection, madeAt: string): Promise<Collected> {
  const answers = await clientOf(connection).nodes();
  if (answers.every(({ view, code }) => view === null && code === null)) {
    const each = answers.map(({ url, why }) => `${url}: ${why ?? "?"}`);
    throw new TenureError("BACKEND_UNAVAILABLE", `no server answers: ${each.join("; ")}.`);
  }
  const names = namesOf(answers);
  const urls = answers.map(({ url }) => url);
  const found = await Promise.all(answers.map((answer, at) => askNode({ ...connection, urls }, answer, names[at]!)));
  const nodes = found.map(({ report }) => report);
  const status = statusOf(answers);
  const about = { made_at: madeAt, version: version(), runtime: `node ${process.version} ${process.platform}`, nodes };
  const texts: readonly (readonly [string, string])[] = [
    ["bundle.json", pretty(about)],
    ["status.txt", statusText(status)],
    ["status.json", pretty(statusObject(status))],
    ["elections.json", pretty(electionsOf(answers).map(electionObject))],
    ["alerts.json", pretty(statusObject(status).alerts)],
    ...found.flatMap(({ texts: own }) => own),
  ];
  const hide = hider([connection.key ?? ""]);
  const bytes = new TextEncoder();
  return { files: texts.map(([name, text]) => ({ name, bytes: bytes.encode(hide(text)) })), nodes };
}

/** By node id; two disks under one id, and nodes that gave none, by a number. */
function namesOf(answers: readonly NodeAnswer[]): string[] {
  const ids = answers.map(({ view }) => view?.nodeId);
  return ids.map((id, at) => (id === undefined || ids.indexOf(id) !== at ? `unnamed_${at + 1}` : id));
}

async function askNode(connection: Connection, { url, view, why }: NodeAnswer, node: string) {
  const texts: [string, string][] = [];
  if (view !== null) texts.push([`nodes/${node}/cluster.json`, pretty(view)]);
  const caller = callerOf(connection);
  const asked = async (path: string, use: (text: string) => void): Promise<string | null> => {
    // Who did not answer a moment ago is not waited for again.
    if (view === null) return why;
    try {
      const signal = AbortSignal.timeout(SUPPORT_ANSWER_MS);
      const answer = async (): Promise<string> =>
        await wholeText(await caller.ask(url, { method: "GET", path }, { timeoutMs: SUPPORT_ANSWER_MS, signal }));
      use(await Promise.race([answer(), lateAfter(signal)]));
      return null;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  };
  const metrics = asked("/metrics", (text) => texts.push([`nodes/${node}/metrics.txt`, text]));
  const diagnostics = asked("/v1/admin/diagnostics", (text) => {
    const {
      log_lines: lines,
      config,
      ...about
    } = JSON.parse(text) as Record<string, unknown> & { log_lines: string[] };
    texts.push([`nodes/${node}/about.json`, pretty(about)], [`nodes/${node}/config.json`, pretty(config)]);
    texts.push([`nodes/${node}/log.jsonl`, lines.map((line) => `${line}\n`).join("")]);
  });
  const report: NodeReport = { node, url, status: why, metrics: await metrics, diagnostics: await diagnostics };
  return { report, texts };
}

async function lateAfter(signal: AbortSignal): Promise<never> {
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  throw new Error(`no whole answer within ${SUPPORT_ANSWER_MS / 1_000} s`);
}

async function wholeText(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += part.length;
    if (bytes > BUNDLED_BYTES_MAX) throw new Error(`the answer is longer than ${bytesText(BUNDLED_BYTES_MAX)}`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

function pretty(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

function version(): string {
  const file = new URL("../../../package.json", import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}

function textOf({ file, bytes, nodes }: { file: string; bytes: number; nodes: readonly NodeReport[] }): string {
  const rows = nodes.map(({ node, url, status, metrics, diagnostics }) => {
    const missing = [
      ...(status === null ? [] : [`no status: ${status}`]),
      ...(status === null && metrics !== null ? [`no metrics: ${metrics}`] : []),
      ...(status === null && diagnostics !== null ? [`no configuration and no log: ${diagnostics}`] : []),
    ];
    return [node, url, missing.length === 0 ? "whole" : missing.join("; ")];
  });
  return `${columns(rows)}${file}, ${bytesText(bytes)}. Look through it before you send it.\n`;
}
