// `tenure config check`: what `tenure server start` would say of a configuration file, and what only shows later: files that
// can't be read, a key that does not belong to its certificate, a certificate of another node or authority, a cluster in which
// nobody may steer. It starts nothing. `tenure config show`: all of it as it is in effect, and who said so.

import { kindsOf, verbsOf } from "../kit/description.ts";
import { CONFIG } from "./help.ts";
import { X509Certificate, createPrivateKey } from "node:crypto";
import { accessSync, constants, existsSync, readFileSync, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { ServerConfig } from "../../contract/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { systemClock } from "../../drivers/system/clock.ts";
import { Security } from "../../drivers/wire/handshake/security.ts";
import { nameWarning } from "../../node/worlds/certificate-names.ts";
import { coordinatorIdentity } from "../../node/worlds/tc-start.ts";
import { paintState } from "../kit/colour.ts";
import { clientSettings } from "./client.ts";
import { readConfigFile } from "../files/config.ts";
import { settingsOf, settingsText, variableWarnings } from "./show.ts";
import { oneOf, parseFlags, UsageError } from "../kit/flags.ts";
import { columns, duration, json, type Output, OUTPUTS, withLongOutput } from "../kit/output.ts";
import { chosen } from "../kit/words.ts";
import { CERTIFICATE_SOON_MS } from "../limits.ts";
import { configOf } from "../server/command.ts";
import { printed, stdoutPaint, warn } from "../kit/print.ts";

const VERBS = verbsOf(CONFIG);
/** /proc and /sys, as Linux numbers them: access says that root may write there, and no file can be made. */
const KERNEL_FILE_SYSTEMS: ReadonlySet<number> = new Set([0x9f_a0, 0x62_65_65_72]);

const KINDS = kindsOf(CONFIG);

export async function config(args: readonly string[]): Promise<number> {
  const { values, words, rest } = parseFlags(withLongOutput(args), KINDS);
  if (values.help !== undefined) return printed(CONFIG.help);
  const [verb, file, more] = [...words, ...(rest ?? [])];
  const step = chosen(verb, VERBS);
  const output = oneOf("-o", values.output ?? "table", OUTPUTS);
  if (values.client !== undefined) {
    if (step !== "show") throw new UsageError(`--client belongs to show, not to ${step}`);
    if (file !== undefined) throw new UsageError(`show --client takes no file, and found ${JSON.stringify(file)}`);
    return await showClient(output);
  }
  if (file === undefined || file === "") throw new UsageError(`${step} needs a file: tenure config ${step} FILE`);
  if (more !== undefined) throw new UsageError(`${step} takes one file, and found ${JSON.stringify(more)} behind it`);
  // Read once: it may be a pipe.
  const raw = readConfigFile(file);
  const found = configOf(raw, file);
  return step === "check" ? check(file, found, output) : show(file, raw, found, output);
}

function show(file: string, raw: unknown, found: ServerConfig, output: Output): number {
  const settings = settingsOf(raw, found, process.env);
  return printed(output === "json" ? json({ file, settings }) : settingsText(settings, stdoutPaint()));
}

async function showClient(output: Output): Promise<number> {
  const { file, settings, warnings } = await clientSettings(process.env);
  for (const warning of warnings) warn(warning);
  return printed(output === "json" ? json({ file, settings }) : settingsText(settings, stdoutPaint()));
}

function check(file: string, found: ServerConfig, output: Output): number {
  const problems = fileProblems(found, systemClock.wallMs());
  if (problems.length > 1) throw new TenureError("CONFIG_INVALID", [`${file}:`, ...problems].join("\n  "));
  if (problems.length === 1) throw new TenureError("CONFIG_INVALID", `${file}: ${problems[0]}.`);
  const warnings = [...configWarnings(found, systemClock.wallMs()), ...variableWarnings(process.env)];
  return printed(output === "json" ? json(configObject(file, found, warnings)) : configText(file, found, warnings));
}

/** What would keep the server from starting. */
function fileProblems(found: ServerConfig, nowMs: number): string[] {
  const { nodeId, dataDir, peer, api, agent, mesh } = found;
  const clientCaFile = api.tls?.clientCaFile ?? null;
  const problems = [
    ...directoryProblems(dataDir),
    ...(peer.tls === null ? [] : peerProblems(nodeId, peer.tls, nowMs)),
    ...(api.tls === null ? [] : pairProblems("api.tls", api.tls, nowMs)),
    ...(clientCaFile === null ? [] : certificateProblems("api.tls.client_ca_file", clientCaFile, nowMs)),
    ...(agent.caFile === null ? [] : certificateProblems("agent.ca_file", agent.caFile, nowMs)),
    ...(agent.keyFile === null ? [] : keyFileProblems("agent.key_file", agent.keyFile)),
    ...(mesh.apiKeyFile === null ? [] : keyFileProblems("mesh.api_key_file", mesh.apiKeyFile)),
  ];
  // What a certificate says is of interest where it can be read.
  return problems.length > 0 ? problems : coordinatorProblems(found);
}

function coordinatorProblems(found: ServerConfig): string[] {
  try {
    coordinatorOf(found);
    return [];
  } catch (error) {
    if (!TenureError.is(error)) throw error;
    return [error.message.replace(/\.$/, "")];
  }
}

/** Null: it is none. */
function coordinatorOf(found: ServerConfig) {
  if (found.tc === null) return null;
  const { endpoint, join } = found.tc;
  return { identity: coordinatorIdentity(found, endpoint), endpoint, join };
}

function keyFileProblems(field: string, file: string): string[] {
  try {
    return readFileSync(file, "utf8").trim() === "" ? [`${field}: ${file} is empty`] : [];
  } catch (error) {
    return [`${field}: can't read ${file}: ${readingError(error)}`];
  }
}

function directoryProblems(dataDir: string): string[] {
  let nearest = dataDir;
  while (!existsSync(nearest) && dirname(nearest) !== nearest) nearest = dirname(nearest);
  if (!statSync(nearest).isDirectory()) return [`data_dir: ${nearest} is not a directory`];
  if (KERNEL_FILE_SYSTEMS.has(statfsSync(nearest).type)) return [`data_dir: ${nearest} can't hold files`];
  try {
    accessSync(nearest, constants.R_OK | constants.W_OK | constants.X_OK);
    return [];
  } catch {
    return [`data_dir: ${nearest} may not be written by this user`];
  }
}

function pairProblems(
  field: string,
  { certFile, keyFile }: { certFile: string; keyFile: string },
  nowMs: number,
): string[] {
  const problems = certificateProblems(`${field}.cert_file`, certFile, nowMs);
  const certificate = certificateOf(certFile);
  try {
    const key = createPrivateKey(readFileSync(keyFile, "utf8"));
    if (certificate !== null && !certificate.checkPrivateKey(key))
      problems.push(`${field}.key_file does not belong to ${field}.cert_file`);
  } catch (error) {
    problems.push(`${field}.key_file: can't read ${keyFile}: ${readingError(error)}`);
  }
  return problems;
}

/** What TLS between nodes asks for: the node's own certificate, from the authority that the others know it by. */
function peerProblems(nodeId: string, tls: NonNullable<ServerConfig["peer"]["tls"]>, nowMs: number): string[] {
  const problems = [
    ...pairProblems("peer.tls", tls, nowMs),
    ...certificateProblems("peer.tls.ca_file", tls.caFile, nowMs),
  ];
  if (problems.length > 0) return problems;
  const [ca, cert, key] = [tls.caFile, tls.certFile, tls.keyFile].map((file) => readFileSync(file, "utf8"));
  try {
    void new Security({ ca: ca ?? "", cert: cert ?? "", key: key ?? "" }, nodeId);
  } catch (error) {
    if (!TenureError.is(error)) throw error;
    return [`peer.tls.cert_file: ${error.message.replace(/\.$/, "")}`];
  }
  return [];
}

function certificateProblems(field: string, file: string, nowMs: number): string[] {
  try {
    const { validFromDate, validToDate } = new X509Certificate(readFileSync(file));
    if (validToDate.getTime() <= nowMs) return [`${field} has expired on ${validToDate.toISOString()}`];
    return validFromDate.getTime() > nowMs ? [`${field} is valid only from ${validFromDate.toISOString()} on`] : [];
  } catch (error) {
    return [`${field}: can't read ${file}: ${readingError(error)}`];
  }
}

function certificateOf(file: string): X509Certificate | null {
  try {
    return new X509Certificate(readFileSync(file));
  } catch {
    return null;
  }
}

function readingError(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "ENOENT") return "there is no such file";
  return code === "EACCES" ? "this user may not" : `it is not PEM (${message})`;
}

/** What works, and is probably not meant. */
export function configWarnings(found: ServerConfig, nowMs: number): string[] {
  const { nodeId, peers, bootstrapExpect, keys, api, peer, backend } = found;
  const members = new Set([nodeId, ...Object.keys(peers), ...bootstrapExpect]);
  const unreachable = bootstrapExpect.filter((id) => !Object.hasOwn(peers, id));
  const files = [peer.tls?.certFile, api.tls?.certFile].filter((file) => file !== undefined);
  return [
    ...(backend === null && members.size % 2 === 0
      ? [`there are ${members.size} nodes: as many may fail as with ${members.size - 1}; take an odd number`]
      : []),
    ...unreachable.map((id) => `bootstrap.expect names ${id}, and peers does not say where it is; it must find us`),
    ...(!keys.some(({ role }) => role === "operator") && (api.tls?.clientCaFile ?? null) === null
      ? ["nobody may steer: there is no key with the role operator, and no api.tls.client_ca_file"]
      : []),
    ...workerWarnings(found, members.size),
    ...meshWarnings(found),
    ...new Set(files.flatMap((file) => expiryWarnings(file, nowMs))),
    ...nameWarnings(found),
  ];
}

/** Its worker is a client like any other, and has to be let in. */
function workerWarnings({ agent, api, keys, backend }: ServerConfig, nodes: number): string[] {
  if (!agent.enabled) return [];
  const needsKey = keys.some(({ role }) => role === "agent") || api.tls !== null;
  return [
    ...(needsKey && agent.keyFile === null
      ? ["agent.enabled without agent.key_file: the worker needs a key of the role agent, and is refused without one"]
      : []),
    ...(api.tls !== null && agent.caFile === null
      ? [
          "agent.enabled without agent.ca_file: the worker trusts the API's certificate only if a public authority signed it",
        ]
      : []),
    ...(backend === null && nodes === 1
      ? ["agent.enabled on a single node: it always leads, and who leads never works; run tenure agent start beside it"]
      : []),
  ];
}

/** A parent lets nobody in without a key, but for one on loopback that has no keys at all. */
function meshWarnings({ mesh }: ServerConfig): string[] {
  if (mesh.parentUrls.length === 0 || mesh.apiKeyFile !== null || mesh.certificate !== null) return [];
  return [
    "mesh.parent_urls without mesh.api_key_file and mesh.cert_file: a parent that asks for a key or a certificate refuses this site",
  ];
}

function expiryWarnings(file: string, nowMs: number): string[] {
  const leftMs = (certificateOf(file)?.validToDate.getTime() ?? Number.POSITIVE_INFINITY) - nowMs;
  return leftMs > 0 && leftMs < CERTIFICATE_SOON_MS
    ? [`${file} expires in ${duration(leftMs)}: docs/runbooks/cluster-certificates.md`]
    : [];
}

function nameWarnings(found: ServerConfig): string[] {
  const { tls } = found.api;
  if (tls === null || certificateOf(tls.certFile) === null) return [];
  return [nameWarning(found, readFileSync(tls.certFile, "utf8"))].filter((warning) => warning !== null);
}

function configObject(file: string, found: ServerConfig, warnings: readonly string[]) {
  const { nodeId, dataDir, backend, peer, api, peers, keys, mesh } = found;
  return {
    file,
    node_id: nodeId,
    data_dir: dataDir,
    backend: backend === null ? null : "postgres",
    peer: { listen: addressText(peer.listen), advertise: peer.advertise, tls: peer.tls !== null },
    api: { listen: addressText(api.listen), advertise: api.advertise, tls: api.tls !== null },
    peers: Object.keys(peers),
    keys: keys.map(({ name, role }) => ({ name, role })),
    mesh: { mode: mesh.mode, controller_id: mesh.controllerId, parent_urls: mesh.parentUrls },
    tc: coordinatorOf(found),
    warnings,
  };
}

function configText(file: string, found: ServerConfig, warnings: readonly string[]): string {
  const { nodeId, dataDir, backend, peer, api, peers, keys, mesh } = found;
  const coordinator = coordinatorOf(found);
  const rows = [
    ["file", `${file}: valid`],
    ["node", nodeId],
    ["data", dataDir],
    ...(backend === null
      ? [["peers at", placeText(peer)]]
      : [["backend", "Postgres; nobody is asked whether it answers"]]),
    ["API at", placeText(api)],
    ...(backend === null ? [["others", Object.keys(peers).join(", ") || "none"]] : []),
    ["keys", keys.map(({ name, role }) => `${name} (${role})`).join(", ") || "none"],
    ["mesh", meshText(mesh)],
    ...(coordinator === null
      ? []
      : [["coordinator", `${coordinator.identity} at ${coordinator.endpoint}; joins ${coordinator.join.join(", ")}`]]),
    ...warnings.map((warning) => [paintState("warning", stdoutPaint()), warning]),
  ];
  return columns(rows);
}

function meshText({ mode, controllerId, parentUrls }: ServerConfig["mesh"]): string {
  if (mode === "standalone") return mode;
  return `${mode}, as ${controllerId ?? "the cluster's id"}; parents: ${parentUrls.join(", ") || "none"}`;
}

function placeText({ listen, advertise, tls }: ServerConfig["peer"] | ServerConfig["api"]): string {
  const known = advertise === null ? "" : `, known as ${advertise}`;
  return `${addressText(listen)}${known}, ${tls === null ? "without TLS" : "TLS"}`;
}

function addressText({ host, port }: { readonly host: string; readonly port: number }): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}
