// An API on a free port of 127.0.0.1, over the in-memory ports, and a caller for it.

import { createHash } from "node:crypto";
import { createApi, type Api, type ApiOptions } from "../../src/api/index.ts";
import { type ApiKey, ROLES } from "../../src/contract/index.ts";
import { systemClock } from "../../src/drivers/system/clock.ts";
import type { LogFields, Logger } from "../../src/ports/logger.ts";
import { TestCluster } from "./test-cluster.ts";
import { TestEvents } from "./test-events.ts";
import { TestJobs } from "./test-jobs.ts";
import { TestCertificates } from "./test-certificates.ts";
import type { Controllers } from "../../src/ports/mesh/controllers.ts";
import { TestControllers } from "./test-controllers.ts";
import { TestKeys } from "./test-keys.ts";
import { TestScopes } from "./test-scopes.ts";
import { TestValues } from "./test-values.ts";

export const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/** The key of each role is the role's name with "-key". */
export const KEYS: readonly ApiKey[] = ROLES.map((role) => ({
  name: `the ${role}`,
  sha256: sha256(`${role}-key`),
  role,
}));

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Undefined where the answer is no JSON. */
  readonly json: Record<string, unknown> | undefined;
}

export class TestApi implements AsyncDisposable {
  readonly cluster = new TestCluster();
  readonly scopes = new TestScopes(this.cluster);
  readonly values = new TestValues(this.cluster, this.scopes);
  readonly events = new TestEvents();
  readonly jobs = new TestJobs(this.cluster, this.events);
  readonly keys = new TestKeys(this.cluster);
  readonly certificates = new TestCertificates(this.cluster);
  readonly lines: { fields: LogFields; message: string }[] = [];
  readonly controllers = new TestControllers(this.cluster);
  readonly audited: LogFields[] = [];
  readonly faults: unknown[] = [];
  api!: Api;
  url = "";
  port = 0;

  async start(options: Partial<ApiOptions> = {}, controllers: Controllers = this.controllers): Promise<this> {
    this.api = await createApi({
      cluster: this.cluster,
      scopes: this.scopes,
      values: this.values,
      jobs: {
        jobs: this.jobs,
        views: this.jobs,
        events: this.events,
        keys: this.keys,
        certificates: this.certificates,
        controllers,
      },
      clusterId: "c-test",
      nodeId: "n1",
      keys: KEYS,
      isLoopback: true,
      trustDomain: "tenure",
      metrics: () => Promise.resolve({ contentType: "text/plain; version=0.0.4; charset=utf-8", text: "up 1\n" }),
      diagnostics: () => ({
        runtime: "node v26",
        uptimeMs: 1.5,
        rssBytes: 1_000,
        config: { node_id: "n1", agent: { labels: { zoneName: "a" } } },
        logLines: ['{"level":30}'],
      }),
      logger: logger((fields, message) => this.lines.push({ fields, message })),
      audit: logger((fields) => this.audited.push(fields)),
      clock: systemClock,
      sha256,
      parseTime: (text) => Date.parse(text),
      onFault: (error) => this.faults.push(error),
      ...options,
    });
    const { port } = await this.api.listen({ host: "127.0.0.1", port: 0 });
    this.port = port;
    this.url = `http://127.0.0.1:${port}`;
    return this;
  }

  /** `key` null: none is sent. */
  async call(
    method: string,
    path: string,
    body?: unknown,
    key: string | null = "operator-key",
    more: Record<string, string> = {},
  ): Promise<Reply> {
    const headers: Record<string, string> = { ...more };
    if (key !== null) headers["x-api-key"] = key;
    if (body !== undefined) headers["content-type"] = "application/json";
    const text = typeof body === "string" ? body : JSON.stringify(body);
    return this.fetch(path, { method, headers, ...(body === undefined ? {} : { body: text }) });
  }

  async fetch(path: string, init: RequestInit = {}): Promise<Reply> {
    const response = await fetch(`${this.url}${path}`, init);
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.startsWith("application/json") ?? false;
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: isJson && text !== "" ? (JSON.parse(text) as Record<string, unknown>) : undefined,
    };
  }

  /** All that a call may change. */
  fingerprint(): string {
    return [this.cluster, this.scopes, this.values, this.jobs, this.keys, this.certificates, this.controllers]
      .map((one) => one.fingerprint())
      .join("");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.api.stop(0);
  }
}

export function startApi(options: Partial<ApiOptions> = {}, controllers?: Controllers): Promise<TestApi> {
  return new TestApi().start(options, controllers);
}

function logger(write: (fields: LogFields, message: string) => void): Logger {
  return { info: write, warn: write, error: write };
}
