// What the tests of jobs over HTTP share: calls that the leader takes, and the contract's shapes for what comes back.

import { expect } from "vitest";
import { JOB_ROUTES, type Route, shape } from "../../src/contract/index.ts";
import type { Reply, TestApi } from "./test-api.ts";

const answerShapes = new Map(
  Object.entries(JOB_ROUTES as Record<string, Route>).map(([id, { answer }]) => [id, answer && shape(answer)]),
);

export function fits(id: keyof typeof JOB_ROUTES, json: unknown): void {
  expect(answerShapes.get(id)?.check(json), `${id}: ${JSON.stringify(json)}`).toEqual({ ok: true, value: json });
}

export interface Lease {
  readonly job_id: string;
  readonly job_epoch: number;
  readonly lease_id: string;
  readonly leader_epoch: number;
}

export const agent = { name: "a-1", session: "s-1", kinds: ["build"], platform: "linux", capacity: 4 };
export const leasing = { agent, max: 1, ttl_ms: 5_000 };

export async function submit(t: TestApi, body: object = { kind: "build" }): Promise<string> {
  return (await t.call("POST", "/v1/jobs", body, "submitter-key")).json?.["id"] as string;
}

export function leasesOf({ json }: Reply): Lease[] {
  return (json as { leases: Lease[] }).leases;
}

export async function lease(t: TestApi): Promise<Lease> {
  return leasesOf(await t.call("POST", "/v1/leases", leasing, "agent-key"))[0]!;
}

export function refOf({ job_id, job_epoch, lease_id }: Lease): Omit<Lease, "leader_epoch"> {
  return { job_id, job_epoch, lease_id };
}
