// The start of a transaction coordinator: who it is by its certificate, and that it meets somebody. Each refusal has its exit code, and says what to do.

import { webcrypto } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ServerConfig } from "../../contract/index.ts";
import { ERRORS, TenureError } from "../../core/kit/errors.ts";
import { parsePeerKey } from "../../core/kit/ids.ts";
import { type TcAnswer, type TcExchange, TcHttp } from "../../drivers/coordinators/index.ts";
import { createCa, issue } from "../../drivers/pki/index.ts";
import { loadX509 } from "../../drivers/pki/x509.ts";
import { ManualClock } from "../../loops/test-clock.ts";
import { ANNOUNCED_MS } from "./limits.ts";
import { announceOnce, coordinatorIdentity, identityOfEndpoint, sameIdentity } from "./tc-start.ts";

const SELF = "https://a.example:7401";
const directory = mkdtempSync(join(tmpdir(), "tenure-tc-start-"));
const file = (name: string): string => join(directory, name);
afterAll(() => rmSync(directory, { recursive: true }));

const CLIENT = "1.3.6.1.5.5.7.3.2";
const SERVER = "1.3.6.1.5.5.7.3.1";

/** A certificate as an authority of others may make it. */
async function written(
  name: string,
  uris: readonly string[],
  uses: readonly string[] = [SERVER, CLIENT],
): Promise<void> {
  const x509 = await loadX509();
  const keys = await webcrypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
  const names = [{ type: "dns", value: "a.example" }, ...uris.map((value) => ({ type: "url", value }))] as const;
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: "CN=a",
    keys,
    signingAlgorithm: { name: "ECDSA", hash: "SHA-256" },
    extensions: [
      new x509.SubjectAlternativeNameExtension([...names]),
      ...(uses.length === 0 ? [] : [new x509.ExtendedKeyUsageExtension([...uses])]),
    ],
  });
  writeFileSync(file(name), certificate.toString("pem"));
}

beforeAll(async () => {
  const ca = await createCa({ trustDomain: "prod", nowMs: Date.now() });
  const node = await issue({ ca, identity: { trustDomain: "prod", kind: "server", name: "n-7" }, nowMs: Date.now() });
  writeFileSync(file("n-7.crt"), node.cert);
  writeFileSync(file("text"), "no certificate");
  await written("public", []);
  await written("two", ["spiffe://prod/server/n1", "spiffe://prod/server/n2"]);
  await written("foreign", ["spiffe://prod/server/n1", "https://a.example"]);
  await written("operator", ["spiffe://prod/operator/joe"]);
  await written("staging", ["spiffe://staging/server/n1"]);
  await written("server-only", ["spiffe://prod/server/n1"], [SERVER]);
  await written("any-use", ["spiffe://prod/server/n1"], []);
});

function configured(
  certFile: string | null,
  { trustDomain = "prod", nodeId = "n1" }: { trustDomain?: string | null; nodeId?: string } = {},
): Pick<ServerConfig, "api" | "peer" | "nodeId"> {
  const tls = certFile === null ? null : { certFile: file(certFile), clientCaFile: null, trustDomain };
  return { nodeId, api: { tls }, peer: { tls: null } } as unknown as ServerConfig;
}

function refusalOf(run: () => unknown): { readonly exit: number; readonly message: string } {
  try {
    run();
  } catch (error) {
    if (TenureError.is(error)) return { exit: ERRORS[error.code].exit, message: error.message };
    throw error;
  }
  throw new Error("was taken");
}

describe("who a coordinator is", () => {
  it("the node id of its certificate, whatever the certificate says of hosts and uses", () => {
    expect(coordinatorIdentity(configured("n-7.crt", { nodeId: "n-7" }), SELF)).toBe("n-7");
    expect(coordinatorIdentity(configured("n-7.crt", { nodeId: "n-7", trustDomain: null }), SELF)).toBe("n-7");
    expect(coordinatorIdentity(configured("any-use"), SELF)).toBe("n1");
  });

  it("alone and without TLS, what its address makes it: always the same, and a node id", () => {
    const identity = coordinatorIdentity(configured(null), "http://127.0.0.1:7401");
    // printf %s http://127.0.0.1:7401 | sha256sum | cut -c1-63
    expect(identity).toBe("4d436277ef9a5791e312bd1a56197b30af391c1f0b6c238743163f96abbe675");
    expect(identity).not.toBe(identityOfEndpoint("http://127.0.0.1:7402"));
    expect(parsePeerKey(`${identity}@0123456789abcdef`)).toBeDefined();
  });

  it.each([
    ["no URI name", "public", /has no URI name; it needs one, spiffe:\/\/prod\/server\/<node id>/],
    ["two of them", "two", /has 2 URI names; it must have exactly one/],
    ["one of ours and one of somebody else", "foreign", /has 2 URI names; it must have exactly one/],
    ["an operator's", "operator", /names spiffe:\/\/prod\/operator\/joe, not spiffe:\/\/prod\/server/],
    ["another trust domain", "staging", /names spiffe:\/\/staging\/server\/n1, of another trust domain than prod/],
    ["a certificate for servers alone", "server-only", /is for servers alone/],
    ["another node's", "n-7.crt", /it is the certificate of node n-7, and this node is n1 \(node_id\)/],
  ])("%s: exit 78, and how to get another one", (_name, certFile, why) => {
    const { exit, message } = refusalOf(() => coordinatorIdentity(configured(certFile), SELF));
    expect(exit).toBe(78);
    expect(message).toMatch(why);
    expect(message).toContain(`api.tls.cert_file ${file(certFile)} can't be a transaction coordinator's (tc.join)`);
    expect(message).toMatch(/`tenure cert issue --node-id ID --host HOST`.*`tenure cert show /);
  });

  it.each(["text", "nowhere"])("a file that is no certificate (%s): exit 78, with its name", (certFile) => {
    const { exit, message } = refusalOf(() => coordinatorIdentity(configured(certFile), SELF));
    expect([exit, message]).toEqual([78, expect.stringContaining(file(certFile))]);
  });

  it("stays while the node runs: a new certificate is of the same node, or is not taken", () => {
    sameIdentity(configured("n-7.crt"), SELF, "n-7");
    const { exit, message } = refusalOf(() => sameIdentity(configured("any-use"), SELF, "n-7"));
    expect([exit, message]).toEqual([
      78,
      expect.stringMatching(/now one of node n1.*the coordinator n-7.*--node-id n-7/),
    ]);
  });
});

const B = "https://b.example:7401";
const C = "https://c.example:7401";
const TAKEN: TcAnswer = { from: "n9", status: 200, body: { endpoints: [], updated_at_unix: 1, expires_at_unix: 10 } };
const REFUSED: TcAnswer = { from: "n9", status: 503, body: { error: "tc_unavailable", message: "Node n9 runs none." } };

/** Other nodes, as the network lets them answer: from the n-th request on; those that are not named never do. */
class Others implements Pick<TcHttp, "tried"> {
  readonly clock = new ManualClock();
  readonly asked: TcExchange[] = [];
  readonly #answers: Readonly<Record<string, readonly [fromTry: number, TcAnswer]>>;

  constructor(answers: Readonly<Record<string, readonly [number, TcAnswer]>> = {}) {
    this.#answers = answers;
  }

  readonly tried: TcHttp["tried"] = async (asked) => {
    this.asked.push(asked);
    const tries = this.asked.filter(({ endpoint }) => endpoint === asked.endpoint).length;
    const [fromTry, answer] = this.#answers[asked.endpoint] ?? [Infinity, TAKEN];
    if (tries >= fromTry) return answer;
    await new Promise<void>((resume) => void this.clock.setTimer(this.clock.nowMs + asked.withinMs, resume));
    return new TenureError("BACKEND_UNAVAILABLE", `${asked.endpoint} did not answer.`);
  };
}

async function announced(
  others: Others,
  join: readonly string[],
  signal?: AbortSignal,
): Promise<"taken" | TenureError> {
  const { clock } = others;
  const ended = announceOnce({ endpoint: SELF, join, disableAuth: false }, { http: others, clock, signal }).then(
    () => "taken" as const,
    (error: unknown) => error as TenureError,
  );
  const isOver = ended.then(() => true);
  // Far beyond the limit: what is still under way then has none.
  for (let passedMs = 0; passedMs < 10 * ANNOUNCED_MS; passedMs += 100) {
    if (await Promise.race([isOver, Promise.resolve(false)])) break;
    await clock.advance(100);
  }
  return await ended;
}

describe("meeting somebody", () => {
  it("is not asked of a node that names itself: it may be the first of all", async () => {
    const others = new Others();
    expect(await announced(others, [B, SELF])).toBe("taken");
    expect(others.asked).toEqual([]);
  });

  it("one that answers is enough, and it has this node's own address", async () => {
    const others = new Others({ [B]: [1, REFUSED], [C]: [1, TAKEN] });
    expect(await announced(others, [B, C])).toBe("taken");
    expect(others.asked.map(({ endpoint }) => endpoint)).toEqual([B, C]);
    expect(others.asked[1]).toMatchObject({ path: "/v1/tc/cluster/announce", body: { self_endpoint: SELF } });
  });

  it("one that starts a little later is waited for", async () => {
    expect(await announced(new Others({ [B]: [4, TAKEN] }), [B, C])).toBe("taken");
  });

  it("nobody: exit 69 within a bounded time, with each of them, why, and what to do", async () => {
    const others = new Others({ [C]: [1, REFUSED] });
    const error = await announced(others, [B, C]);
    expect(error).toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    expect(ERRORS.BACKEND_UNAVAILABLE.exit).toBe(69);
    expect((error as TenureError).message).toMatch(
      /^No node of tc\.join has taken .* within 10 s\. https:\/\/b\.example:7401 did not answer\. https:\/\/c\.example:7401 answers 503: Node n9 runs none\. Start one of them first.*--join, TENURE_TC_JOIN.*https:\/\/a\.example:7401\.$/,
    );
    expect(others.clock.nowMs).toBeLessThan(1_000 + ANNOUNCED_MS + 2_000);
  });

  it("over the real calls: a port that nobody listens on, and an address that may not be called, are named", async () => {
    const clock = new ManualClock();
    const http = new TcHttp({
      tls: null,
      isLoopback: true,
      trustDomain: "prod",
      isRevoked: () => false,
      clock,
      logger: { warn: () => undefined },
    });
    const ended = announceOnce(
      { endpoint: SELF, join: ["http://127.0.0.1:1", B], disableAuth: false },
      { http, clock },
    );
    const failed = ended.then(
      () => "",
      (error: unknown) => (error as TenureError).message,
    );
    const turn = async (): Promise<null> => {
      await new Promise((resume) => setImmediate(resume));
      await clock.advance(ANNOUNCED_MS);
      return null;
    };
    let message: string | null = null;
    while (message === null) message = await Promise.race([failed, turn()]);
    expect(message).toMatch(
      /127\.0\.0\.1:1.* can't be reached: nothing listens there.*https:\/\/b\.example:7401 is not called/,
    );
    http.close();
  });

  it("a node that is stopped meanwhile waits no longer", async () => {
    const stop = new AbortController();
    stop.abort();
    const others = new Others();
    expect(await announced(others, [B], stop.signal)).toBe("taken");
    expect(others.asked).toHaveLength(1);
  });
});
