// What every server says in the end: all events as bytes, whether they verify, all jobs. Nobody's word is taken for another's.

import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { OPERATOR_KEY as key, type TenureNode, waitFor } from "../servers/index.ts";
import type { JobEvent } from "./jobs-judge.ts";

const PAGE_EVENTS = 1_000;
const PAGE_JOBS = 200;
const PAGES_MAX = 100_000;
const CALL_MS_MAX = 60_000;
const RETRY_MS_MAX = 60_000;
const RETRY_MS = 200;
const UNAVAILABLE = 503;
const OPENING = '{"events":[';
const CLOSING = '],"throughSequence":';

export interface NodeAudit {
  readonly id: string;
  readonly events: readonly JobEvent[];
  /** Of the events' bytes, from the first to the last. */
  readonly sha256: string;
  readonly verdict: { readonly valid: boolean; readonly headHash?: string | null; readonly throughSequence?: number };
  /** State by id, as lists show it. */
  readonly states: ReadonlyMap<string, string>;
}

/** All of them, once they have the same last event. */
export async function auditNodes(nodes: readonly TenureNode[]): Promise<NodeAudit[]> {
  await waitFor("all servers to have the same last event", async () => {
    const heads = await Promise.all(nodes.map((node) => textOf(node, "/v1/stats")));
    return new Set(heads.map((text) => (JSON.parse(text) as { last_sequence: number }).last_sequence)).size === 1;
  });
  const audits: NodeAudit[] = [];
  for (const node of nodes) audits.push(await auditNode(node));
  return audits;
}

async function auditNode(node: TenureNode): Promise<NodeAudit> {
  const { events, sha256 } = await allEvents(node);
  const verdict = JSON.parse(await textOf(node, "/api/events/verify")) as NodeAudit["verdict"];
  return { id: node.id, events, sha256, verdict, states: await allJobs(node) };
}

async function allEvents(node: TenureNode): Promise<{ readonly events: JobEvent[]; readonly sha256: string }> {
  const hash = createHash("sha256");
  const events: JobEvent[] = [];
  let since = 0;
  for (let page = 0; page < PAGES_MAX; page++) {
    const text = await textOf(node, `/api/events/since/${since}?limit=${PAGE_EVENTS}`);
    // Between these stand the stored bytes of each event with its hash: where pages end makes no difference.
    const end = text.lastIndexOf(CLOSING);
    if (!text.startsWith(OPENING) || end < 0) throw new Error(`${node.id} answered ${text.slice(0, 200)}`);
    const { events: found } = JSON.parse(text) as { events: JobEvent[] };
    if (found.length === 0) return { events, sha256: hash.digest("hex") };
    hash.update(`${text.slice(OPENING.length, end)},`);
    for (const { sequence, eventType, entityId, leaderEpoch, payload } of found) {
      events.push({ sequence, eventType, entityId, leaderEpoch, payload });
    }
    since = found.at(-1)!.sequence;
  }
  throw new Error(`${node.id} has more than ${PAGES_MAX} pages of events`);
}

/** A busy machine elects once more: what may be asked again is, for a while. */
async function textOf(node: TenureNode, path: string): Promise<string> {
  let why = "";
  for (const untilMs = performance.now() + RETRY_MS_MAX; performance.now() < untilMs; await sleep(RETRY_MS)) {
    try {
      const response = await fetch(`${node.url}${path}`, {
        headers: { "x-api-key": key },
        signal: AbortSignal.timeout(CALL_MS_MAX),
      });
      const text = await response.text();
      if (response.ok) return text;
      why = `${response.status} ${text}`;
      if (response.status !== UNAVAILABLE) break;
    } catch (error) {
      why = String(error);
    }
  }
  throw new Error(`${node.id} did not answer ${path}: ${why}`);
}

async function allJobs(node: TenureNode): Promise<Map<string, string>> {
  const states = new Map<string, string>();
  let cursor = "";
  for (let page = 0; page < PAGES_MAX; page++) {
    const path = `/v1/jobs?limit=${PAGE_JOBS}&consistency=linearizable${cursor}`;
    const { jobs, next } = JSON.parse(await textOf(node, path)) as {
      jobs: { id: string; state: string }[];
      next: string | null;
    };
    for (const { id, state } of jobs) states.set(id, state);
    if (next === null) return states;
    cursor = `&cursor=${encodeURIComponent(next)}`;
  }
  throw new Error(`${node.id} has more than ${PAGES_MAX} pages of jobs`);
}

/** What differs between the servers, or is wrong on one of them. */
export function compareNodes(audits: readonly NodeAudit[]): string[] {
  const findings: string[] = [];
  const hashes = audits.map(({ id, sha256, events }) => `${id}: ${events.length} events, ${sha256.slice(0, 16)}`);
  if (new Set(audits.map(({ sha256 }) => sha256)).size > 1) {
    findings.push(`the servers do not serve the same events: ${hashes.join("; ")}`);
  }
  for (const { id, verdict, states, events } of audits) {
    if (!verdict.valid) findings.push(`${id} says that its events do not verify: ${JSON.stringify(verdict)}`);
    if (verdict.throughSequence !== undefined && verdict.throughSequence !== events.at(-1)?.sequence) {
      findings.push(`${id} verified up to ${verdict.throughSequence} and has ${events.at(-1)?.sequence}`);
    }
    const submitted = events.filter(({ eventType }) => eventType === "build:submitted");
    if (states.size !== submitted.length) findings.push(`${id} lists ${states.size} jobs of ${submitted.length}`);
    const open = submitted.filter(({ entityId }) => states.get(entityId) !== "completed");
    if (open.length > 0) {
      const shown = open.slice(0, 3).map(({ entityId }) => `${entityId} ${states.get(entityId) ?? "missing"}`);
      findings.push(`${id} shows ${open.length} jobs that are not completed: ${shown.join(", ")}`);
    }
  }
  return findings;
}
