// `tenure mesh`: a site among other sites, and what an operator does there.

import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import type { Caller } from "../../client/caller.ts";
import { assertNever, TenureError } from "../../contract/errors.ts";
import { readNote, toBase64 } from "../../core/mesh/proof/index.ts";
import { readMeshKey } from "../../drivers/pki/index.ts";
import { systemDigest } from "../../drivers/system/digest.ts";
import { signerOf, verifyEd25519 } from "../../drivers/system/signatures.ts";
import type { GateView, OwnLineView, SiteView } from "../../ports/mesh/lines.ts";
import type { LinkView } from "../../ports/mesh/links.ts";
import { callerOf, readConnection } from "../connection/connection.ts";
import { CONNECTION_KINDS } from "../kit/connection-help.ts";
import { kindsOf, verbsOf } from "../kit/description.ts";
import { parseFlags, UsageError } from "../kit/flags.ts";
import { json, printable, withLongOutput } from "../kit/output.ts";
import { printed, stdoutPaint } from "../kit/print.ts";
import { untilSignal } from "../kit/until-signal.ts";
import { chosen } from "../kit/words.ts";
import { MESH_CALL_MS, MESH_LOG_NEWEST_MAX, MESH_RETRIES_MAX, MESH_VERIFY_MS, SEQUENCE_MAX } from "../limits.ts";
import { toSnake } from "../../contract/index.ts";
import { wholeNumber } from "../job/spec-flags.ts";
import { audit, AuditFailed, type AuditedSite, type Pin, type Proven } from "./audit.ts";
import { MESH } from "./help.ts";
import { type LogOutput, type LogStep, showLog } from "./log.ts";
import { gateObject, operate, type OperatorStep } from "./operator.ts";
import { failedText, keyText, provenText, sitesTable, statusText } from "./view.ts";

const VERBS = verbsOf(MESH);
const KINDS = { ...CONNECTION_KINDS, ...kindsOf(MESH) };
const SITE = /^[a-z0-9][a-z0-9-]{0,62}$/;
const HASH = /^[0-9a-f]{64}$/;
const PUBLIC_KEY = /^[A-Za-z0-9+/]{43}=$/;
/** What an audit that has found something ends with. */
const EXIT_FOUND = 1;

export type MeshStep =
  | { readonly verb: "key"; readonly file: string | null }
  | { readonly verb: "sites" }
  | { readonly verb: "status" }
  | LogStep
  | OperatorStep
  | { readonly verb: "verify" }
  | { readonly verb: "audit"; readonly url: string | null; readonly pin: Pin };

/** What GET /v1/mesh/sites answers, in the SDK's spelling. */
export interface MeshSites {
  readonly nodeKey: string;
  readonly status: string;
  readonly why: string | null;
  readonly gate: GateView;
  readonly leftAt: number | null;
  readonly own: OwnLineView | null;
  readonly sites: readonly ShownSite[];
  readonly links: readonly LinkView[];
}

/** The last four are known on the leader alone. */
export interface ShownSite extends SiteView {
  readonly missingEvents: number | null;
  readonly missingMs: number | null;
  readonly heardMsAgo: number | null;
  /** Null: it is linked, or never had a link there. Absent: of an earlier release. */
  readonly cutOffMs?: number | null | undefined;
}

type LogFlag = "site" | "type" | "entity" | "after" | "limit" | "follow";
type MeshFlags = Partial<Record<"ring" | "public-key" | "key-file" | "new-line" | LogFlag, string>>;

export async function mesh(args: readonly string[]): Promise<number> {
  const { values, words, rest } = parseFlags(withLongOutput(args), KINDS);
  if (values.help !== undefined) return printed(MESH.help);
  const step = readStep([...words, ...(rest ?? [])], values);
  const url = step.verb === "audit" && step.url !== null ? { url: step.url } : {};
  const connection = await readConnection({ ...values, ...url }, process.env);
  const isJson = connection.output === "json";
  if (step.verb === "key" && step.file !== null) {
    const key = toBase64(signerOf(readMeshKey(step.file)).publicKey);
    return printed(isJson ? json({ public_key: key }) : `${key}\n`);
  }
  const end = untilSignal();
  try {
    const caller = callerOf(connection);
    if (step.verb === "audit") return await runAudit(caller, step.pin, isJson, end.signal);
    if (step.verb === "log") {
      await showLog(caller, step, logOutput(isJson, end.signal), end.signal);
      return 0;
    }
    if (isOperators(step)) return await operate(caller, step, isJson, end.signal);
    if (step.verb === "verify") return await runVerify(caller, connection.urls[0]!, isJson, end.signal);
    const sites = await sitesOf(caller, end.signal);
    switch (step.verb) {
      case "key":
        return printed(isJson ? json(keyObject(sites)) : keyText(sites));
      case "sites":
        return printed(isJson ? json(sitesObject(sites)) : sitesTable(sites, stdoutPaint()));
      case "status":
        return printed(isJson ? json(sitesObject(sites)) : statusText(sites));
      default:
        return assertNever(step, "mesh");
    }
  } catch (error) {
    if (!end.signal.aborted) throw error;
    return end.code;
  }
}

export function readStep(words: readonly string[], values: MeshFlags): MeshStep {
  const verb = chosen(words[0], VERBS);
  const [, word, more] = words;
  for (const [flag, owners] of Object.entries(OWNERS) as [keyof MeshFlags, readonly string[]][]) {
    if (values[flag] !== undefined && !owners.includes(verb))
      throw new UsageError(`--${flag} belongs to ${owners.join(" and ")}, not to ${verb}`);
  }
  const takes = TAKES[verb];
  if (takes === undefined && word !== undefined) throw new UsageError(`${verb} takes no ${JSON.stringify(word)}`);
  if (more !== undefined) throw new UsageError(`${verb} takes one ${takes}, not ${words.length - 1}`);
  switch (verb) {
    case "key":
      return { verb, file: values["key-file"] ?? null };
    case "audit":
      return { verb, url: word ?? null, pin: pinOf(values) };
    case "approve":
      return { verb, site: siteOf(verb, word), ring: pinOf(values).ringHash };
    case "evict":
      return { verb, site: siteOf(verb, word) };
    case "evidence":
      return { verb, site: word === undefined ? null : siteOf(verb, word) };
    case "resume":
      return { verb, isNewLine: values["new-line"] !== undefined };
    case "log":
      return logStep(values);
    default:
      return { verb };
  }
}

/** Which verbs a flag belongs to. */
const OWNERS = {
  ring: ["audit", "approve"],
  "public-key": ["audit"],
  "key-file": ["key"],
  "new-line": ["resume"],
  site: ["log"],
  type: ["log"],
  entity: ["log"],
  after: ["log"],
  limit: ["log"],
  follow: ["log"],
} as const satisfies Record<keyof MeshFlags, readonly string[]>;

/** What may follow a verb. */
const TAKES: Partial<Record<(typeof VERBS)[number], string>> = {
  audit: "URL",
  approve: "site",
  evict: "site",
  evidence: "site",
};

function siteOf(verb: string, word: string | undefined): string {
  if (word === undefined) throw new UsageError(`${verb} takes the controller id of a site`);
  if (SITE.test(word)) return word;
  throw new UsageError(`${verb} takes the controller id of a site: a-z, 0-9 and -, not ${JSON.stringify(word)}`);
}

function isOperators(step: MeshStep): step is OperatorStep {
  return ["approve", "evict", "resume", "leave", "join", "evidence"].includes(step.verb);
}

function logStep({ site, type, entity, after, limit, follow }: MeshFlags): LogStep {
  if (site !== undefined && !SITE.test(site)) {
    throw new UsageError(`--site takes the controller id of a site: a-z, 0-9 and -, not ${JSON.stringify(site)}`);
  }
  // Of the newest no more can be asked for at once.
  const limitMax = after === undefined && follow === undefined ? MESH_LOG_NEWEST_MAX : SEQUENCE_MAX;
  return {
    verb: "log",
    site: site ?? null,
    type: type ?? null,
    entity: entity ?? null,
    after: after === undefined ? null : wholeNumber("--after", after, 0, SEQUENCE_MAX),
    limit: limit === undefined ? null : wholeNumber("--limit", limit, 1, limitMax),
    isFollowed: follow !== undefined,
  };
}

/** A reader that is slower than the log must not let it pile up here. */
function logOutput(isJson: boolean, signal: AbortSignal): LogOutput {
  return {
    isJson,
    write: async (text) => {
      if (!process.stdout.write(text)) await once(process.stdout, "drain", { signal });
    },
    warn: (text) => void process.stderr.write(`tenure: ${text}\n`),
    pause: (ms) => setTimeout(ms, undefined, { signal }),
  };
}

function pinOf({ ring, "public-key": publicKey }: MeshFlags): Pin {
  if (ring !== undefined && !HASH.test(ring)) {
    throw new UsageError(`--ring takes 64 hexadecimal digits, not ${JSON.stringify(ring)}`);
  }
  if (publicKey !== undefined && !PUBLIC_KEY.test(publicKey)) {
    throw new UsageError(`--public-key takes 32 bytes in base64, not ${JSON.stringify(publicKey)}`);
  }
  return { ringHash: ring ?? null, publicKey: publicKey ?? null };
}

async function runAudit(caller: Caller, pin: Pin, isJson: boolean, signal: AbortSignal): Promise<number> {
  const startMs = performance.now();
  try {
    const tools = { digest: systemDigest, verify: verifyEd25519 };
    const proven = await audit({ ...tools, site: auditedSite(caller, signal), progress: progressOf(isJson) }, pin);
    const ms = Math.round(performance.now() - startMs);
    return printed(isJson ? json({ ...provenObject(proven), took_ms: ms }) : provenText(proven, ms));
  } catch (error) {
    if (!(error instanceof AuditFailed)) throw error;
    const { line, sequence, problem } = error;
    if (isJson) process.stdout.write(json({ valid: false, line, sequence, problem }));
    else process.stderr.write(failedText(error));
    return EXIT_FOUND;
  }
}

/** What POST /v1/mesh/replay answers, in the SDK's spelling. */
interface Replayed {
  readonly atMs: number;
  readonly outcome: "equal" | "differs" | "broken" | "cut";
  readonly events: number;
  readonly reason: string | null;
}

async function runVerify(caller: Caller, url: string, isJson: boolean, signal: AbortSignal): Promise<number> {
  const asked = { signal, timeoutMs: MESH_VERIFY_MS };
  const response = await caller.ask(url, { method: "POST", path: "/v1/mesh/replay", body: {} }, asked);
  const { outcome, events, reason } = await caller.bodyOf<Replayed>(response);
  const text = `replayed ${events} events: ${outcome}${reason === null ? "" : `: ${printable(reason)}`}\n`;
  printed(isJson ? json({ outcome, events, reason }) : text);
  return outcome === "equal" ? 0 : EXIT_FOUND;
}

/** For people who wait: how far it is, on a terminal. */
function progressOf(isJson: boolean): (through: number) => void {
  if (isJson || !process.stderr.isTTY) return () => undefined;
  return (through) => void process.stderr.write(`\r${through} events`);
}

async function sitesOf(caller: Caller, signal: AbortSignal): Promise<MeshSites> {
  return await caller.readJson<MeshSites>("/v1/mesh/sites", { signal, timeoutMs: MESH_CALL_MS });
}

function auditedSite(caller: Caller, signal: AbortSignal): AuditedSite {
  const ask = async <T>(path: string): Promise<T> => {
    for (let tries = 1; ; tries++) {
      try {
        return await caller.readJson<T>(path, { signal, timeoutMs: MESH_CALL_MS });
      } catch (error) {
        const isBusy = TenureError.is(error) && (error.code === "OVERLOADED" || error.code === "BACKEND_UNAVAILABLE");
        if (!isBusy || tries >= MESH_RETRIES_MAX) throw error;
        await setTimeout(tries * 100);
      }
    }
  };
  return {
    lines: async () => (await ask<MeshSites>("/v1/mesh/sites")).own?.lines ?? [],
    page: async (line, after) =>
      (await ask<{ page?: unknown }>(`/v1/mesh/pages?line=${line}&after=${after}`)).page ?? null,
    head: async (line) => {
      const { heads } = await ask<{ heads: readonly string[] }>("/v1/mesh/heads");
      const own = heads.find((note) => {
        const read = readNote(note);
        return read.kind === "note" && read.checkpoint.line === line;
      });
      if (own === undefined) throw new AuditFailed(line, null, "the site shows no head of it");
      return own;
    },
    consistency: async (line, from, to) =>
      (await ask<{ path: readonly string[] }>(`/v1/mesh/consistency?line=${line}&from=${from}&to=${to}`)).path,
  };
}

function keyObject({ nodeKey, own }: MeshSites) {
  return { public_key: nodeKey, ring: own?.ringHash ?? null, line: own?.line ?? null };
}

function sitesObject({ nodeKey, status, why, gate, leftAt, own, sites, links }: MeshSites) {
  const shown = own && {
    id: own.controller,
    name: own.name,
    urls: own.urls,
    line: own.line,
    generation: own.generation,
    size: own.size,
    first: own.first,
    ring: own.ringHash,
    keys: own.ring.keys,
  };
  const gated = gateObject(gate);
  return {
    public_key: nodeKey,
    status,
    why,
    gate: gated,
    left_at: leftAt,
    own: shown,
    sites: toSnake(sites),
    links: toSnake(links),
  };
}

function provenObject({ controller, lines, ringHash, isPinned }: Proven) {
  const shown = lines.map(({ ringChanges, ...line }) => ({ ...line, ring_changes: ringChanges }));
  return { valid: true, controller, ring: ringHash, pinned: isPinned, lines: shown };
}
