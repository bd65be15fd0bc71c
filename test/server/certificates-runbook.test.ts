// docs/runbooks/cluster-certificates.md, command by command as it is written, on three nodes with TLS under load: a certificate is
// renewed, the authority is replaced, a client certificate is revoked. No call fails on the way, nobody campaigns, and the nodes'
// workers run jobs before and after.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { certificateFetch } from "../../src/cli/connection/transport.ts";
import { type ClientFetch, createClient } from "../../src/client/index.ts";
import { CALM_ELECTION, startTenureCluster, type TenureCluster, waitFor } from "../servers/index.ts";
import { runbookSteps, runCommand } from "../servers/runbook.ts";
import { JobLoad } from "./test-job-load.ts";

const LIMIT_MS = 300_000;
const RUNBOOK = "docs/runbooks/cluster-certificates.md";

/** A program with alice's files: it reads them when it starts, and is started again when they have changed. */
class Program {
  /** What a call met that was refused for who made it, or because of the server's certificate. */
  readonly failures: string[] = [];
  readonly #read: () => ClientFetch;
  #fetch: ClientFetch;

  constructor(directory: string, name: string) {
    const text = (file: string): string => readFileSync(join(directory, file), "utf8");
    this.#read = () => certificateFetch({ ca: text("ca.crt"), cert: text(`${name}.crt`), key: text(`${name}.key`) });
    this.#fetch = this.#read();
  }

  readonly fetch: ClientFetch = async (url, init) => {
    try {
      const answer = await this.#fetch(url, init);
      if (answer.status === 401 || answer.status === 403) this.failures.push(`${url}: ${answer.status}`);
      return answer;
    } catch (error) {
      // A kept connection that the server ended, as it was retired, while the client wrote to it: HTTP's own, and sent again.
      const isEnded = /socket hang up|ECONNRESET|EPIPE/.test(String(error));
      if (!isEnded && init.signal?.aborted !== true) this.failures.push(`${url}: ${String(error)}`);
      throw error;
    }
  };

  restart(): void {
    this.#fetch = this.#read();
  }
}

/** A scope that is renewed ten times a second; each answer must be a renewal. */
class Renewals {
  readonly failures: string[] = [];
  count = 0;
  readonly #resting = new AbortController();
  readonly #done: Promise<void>;

  constructor(urls: readonly string[], fetch: ClientFetch) {
    this.#done = this.#run(urls, fetch);
  }

  async rest(): Promise<void> {
    this.#resting.abort();
    await this.#done;
  }

  async #run(urls: readonly string[], fetch: ClientFetch): Promise<void> {
    const { scopes } = createClient({ urls, fetch, timeoutMs: 30_000 });
    const held = { scope: "runbook", session: "s" };
    try {
      const grant = await scopes.acquire({ ...held, identity: "runbook", ttlMs: 60_000, waitMs: 0 });
      if (!grant.granted) throw new Error("the scope was not granted");
      while (!this.#resting.signal.aborted) {
        await scopes.renew({ ...held, epoch: grant.epoch });
        this.count++;
        await sleep(100);
      }
    } catch (error) {
      this.failures.push(String(error));
    }
  }
}

async function started(reloads: Map<string, number>): Promise<TenureCluster> {
  const cluster = await startTenureCluster({
    tls: true,
    election: CALM_ELECTION,
    supervised: { capacity: 1 },
    prepare: (node) => {
      node.configure({ agent: { ...node.config.agent, ca_file: "ca.crt" } });
      node.told = (text) => {
        const count = text.split(`"node":"${node.id}","event":"reloaded"`).length - 1;
        reloads.set(node.id, (reloads.get(node.id) ?? 0) + count);
      };
    },
  });
  onTestFinished(() => cluster.end());
  return cluster;
}

test(
  "the runbook's commands, in their order, on three nodes under load: no call fails",
  { timeout: LIMIT_MS },
  async () => {
    const reloads = new Map<string, number>();
    const cluster = await started(reloads);
    const { directory, urls } = cluster;
    const program = new Program(await cluster.issueTo("operator", "alice"), "operator-alice");
    const client = createClient({ urls, fetch: program.fetch });
    const term = (await client.cluster()).term;
    const load = new JobLoad({ urls, fetch: program.fetch, perSecond: 20, batch: 2 });
    onTestFinished(() => load.end());
    await load.start();
    const renewals = new Renewals(urls, program.fetch);
    onTestFinished(() => renewals.rest());

    /** Workers have no certificate and no key of alice's: each reads the authority of its own node. */
    const worked = async (): Promise<void> => {
      const online = async () =>
        (await client.agents()).filter(({ state, name }) => state === "online" && /^n\d-worker$/.test(name));
      await waitFor("the workers of the two nodes that do not lead", async () => (await online()).length === 2);
      const id = await client.submit({ kind: "exec", payload: { command: ["true"] } });
      expect((await client.wait(id, { signal: AbortSignal.timeout(60_000) })).state).toBe("completed");
    };
    await worked();
    const environment: Record<string, string> = { URLS: urls.join(",") };
    for (const node of cluster.nodes) environment[`PID_${node.id.toUpperCase()}`] = String(node.pid);
    const issueBob = "tenure cert issue --dir ca2 --out operator-bob --operator bob";
    const bob = async (): Promise<number> => {
      const fetch = new Program(join(directory, "operator-bob"), "operator-bob").fetch;
      return (await fetch(`${urls[0]}/v1/cluster`, {})).status;
    };
    const run = async (command: string): Promise<string> => {
      const before = new Map(reloads);
      const done = await runCommand(command, { directory, environment });
      expect(done, command).toMatchObject({ code: 0, stderr: "" });
      for (const [, number] of command.matchAll(/PID_N(\d)/g)) {
        const id = `n${number}`;
        await waitFor(`${id} to read its certificates`, () => (reloads.get(id) ?? 0) > (before.get(id) ?? 0));
      }
      if (command.includes("operator-alice/ca.crt") || command.includes("--operator alice")) program.restart();
      // What was loaded is in use: jobs are accepted and scopes renewed with it.
      const [accepted, renewed] = [load.accepted.size, renewals.count];
      await waitFor("calls to go on", () => load.accepted.size > accepted && renewals.count > renewed);
      expect([...program.failures, ...load.refusals, ...renewals.failures], command).toEqual([]);
      return done.stdout;
    };

    const steps = runbookSteps(RUNBOOK);
    expect(steps.length).toBeGreaterThan(15);
    for (const { command } of steps) {
      const isRevocation = command.startsWith("tenure cert revoke ");
      if (isRevocation) await run(issueBob);
      if (isRevocation) expect(await bob()).toBe(200);
      const said = await run(command);
      if (isRevocation) expect(await bob()).toBe(401);
      if (command.includes("--operator bob --force")) expect(await bob()).toBe(200);
      if (command.startsWith("tenure cert revoked")) expect(said).toContain("spiffe://tenure/operator/bob");
      if (command.startsWith("tenure cluster status")) {
        expect(said.match(/^n\d .* ok /gm), said).toHaveLength(3);
        expect(said).not.toMatch(/unauthenticated|unresponsive|down/);
      }
      if (command.startsWith("tenure config check")) expect(said).not.toContain("warning");
    }

    await worked();
    await renewals.rest();
    await load.rest();
    for (const id of load.accepted.values()) expect((await load.client.wait(id)).state).toBe("completed");
    expect([...program.failures, ...load.refusals, ...renewals.failures]).toEqual([]);
    expect((await client.cluster()).term).toBe(term);
    // The nodes trust the next authority alone, and know each other by it also when they are started again.
    const next = readFileSync(join(directory, "ca2/ca.crt"), "utf8");
    for (const node of cluster.nodes) expect(readFileSync(join(node.home, "ca.crt"), "utf8")).toBe(next);
    for (const node of cluster.nodes) await node.restart();
    await cluster.steady();
    program.restart();
    expect((await client.cluster()).members).toHaveLength(3);
  },
);
