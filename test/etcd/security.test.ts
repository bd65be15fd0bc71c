// Users, rights, tokens and certificates, with a real etcd.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, type TlsOptions } from "node:tls";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type EtcdServer, startEtcd } from "../servers/index.ts";
import { findProgram } from "../servers/server-process.ts";
import { EtcdSession } from "../../src/electors/etcd/session.ts";
import { httpWire } from "../../src/drivers/etcd/index.ts";
import type { TlsFiles } from "../../src/ports/backends/backend.ts";
import { api, freshScope, never, noEtcd, QUICK, quickEtcd, seatAt } from "./test-seat.ts";

const openssl = findProgram("openssl");

describe.skipIf(noEtcd)("an etcd with users", () => {
  let server: EtcdServer;
  beforeAll(async () => {
    server = await startEtcd(QUICK);
    const ask = (path: string, body: object): Promise<unknown> => api(server.endpoint, `auth/${path}`, body);
    await ask("user/add", { name: "root", password: "rootpass" });
    await ask("user/grant", { user: "root", role: "root" });
    // Exactly what an application needs: its prefix, no more.
    await ask("role/add", { name: "tenure" });
    const perm = { permType: "READWRITE", key: btoa("tenure/"), range_end: btoa("tenure0") };
    await ask("role/grant", { name: "tenure", perm });
    await ask("user/add", { name: "app", password: "s3cret-pass" });
    await ask("user/grant", { user: "app", role: "tenure" });
    await ask("role/add", { name: "reading" });
    await ask("role/grant", { name: "reading", perm: { ...perm, permType: "READ" } });
    await ask("user/add", { name: "reader", password: "readpass" });
    await ask("user/grant", { user: "reader", role: "reading" });
    await ask("enable", {});
  });
  afterAll(() => server.end());

  const app = { user: "app", password: "s3cret-pass" };

  test("a user with rights on the prefix alone can win, beat, release, and be looked at", async () => {
    const backend = quickEtcd(server.endpoint, app);
    const scope = freshScope();
    const first = seatAt(backend, scope, "first");
    const { epoch } = await first.seat.acquire(never);
    const waiting = seatAt(backend, scope, "second").seat.acquire(never);
    await first.seat.beat(epoch);
    await first.seat.release(epoch);
    expect((await waiting).epoch).toBeGreaterThan(epoch);
    const admin = backend.admin();
    onTestFinished(() => admin.close());
    expect(await admin.history(scope)).toHaveLength(3);
    expect((await admin.list()).map((record) => record.scope)).toContain(scope);
  });

  test("credentials may stand in the URL", async () => {
    const endpoint = server.endpoint.replace("//", "//app:s3cret-pass@");
    const { seat } = seatAt(quickEtcd(endpoint), freshScope());
    expect(await seat.leader()).toBeNull();
  });

  test.each([
    ["a wrong password", { user: "app", password: "wrong-pass" }, /"user" and "password"/],
    ["an unknown user", { user: "nobody", password: "x" }, /"user" and "password"/],
    ["no user at all", {}, /"user" and "password"/],
    ["another prefix", { user: "app", password: "s3cret-pass", prefix: "other/" }, /whole key prefix/],
  ])("%s is refused, and no retry is promised", async (_what, options, advice) => {
    const { seat } = seatAt(quickEtcd(server.endpoint, options), freshScope());
    const error = await seat.acquire(never).catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      code: "PERMISSION_DENIED",
      retryable: false,
      message: expect.stringMatching(advice),
    });
    expect(String(error)).not.toMatch(/s3cret-pass|wrong-pass/);
  });

  test("a user who may only read is refused at once, also while another leads", async () => {
    const scope = freshScope();
    await seatAt(quickEtcd(server.endpoint, app), scope, "leader").seat.acquire(never);
    const { seat } = seatAt(quickEtcd(server.endpoint, { user: "reader", password: "readpass" }), scope, "reader");
    expect(await seat.leader()).toMatchObject({ identity: "leader" });
    await expect(seat.acquire(never)).rejects.toMatchObject({ code: "PERMISSION_DENIED", retryable: false });
  });

  test("a token that etcd has forgotten is replaced; rights that are lost later are waited for", async () => {
    const scope = freshScope();
    const backend = quickEtcd(server.endpoint, { ...app, ttlSeconds: 10 });
    const { seat, losses } = seatAt(backend, scope);
    const { epoch } = await seat.acquire(never);
    await server.stop();
    await server.start();
    await expect.poll(() => seat.beat(epoch).then(() => "beaten", String), { timeout: 10_000 }).toBe("beaten");
    expect(losses).toEqual([]);
    await seat.release(epoch);

    const { token } = await api(server.endpoint, "auth/authenticate", { name: "root", password: "rootpass" });
    await api(server.endpoint, "auth/user/revoke", { name: "app", role: "tenure" }, token);
    await expect(seat.acquire(never)).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE", retryable: true });
    await api(server.endpoint, "auth/user/grant", { user: "app", role: "tenure" }, token);
    expect((await seat.acquire(never)).epoch).toBeGreaterThan(epoch);
  });
});

test.skipIf(noEtcd)("an etcd without users refuses one, and says so", async () => {
  const server = await startEtcd(QUICK);
  onTestFinished(() => server.end());
  const { seat } = seatAt(quickEtcd(server.endpoint, { user: "app", password: "x" }), freshScope());
  await expect(seat.acquire(never)).rejects.toMatchObject({
    code: "PERMISSION_DENIED",
    message: expect.stringMatching(/not enabled.*leave the user out/),
  });
});

describe.skipIf(noEtcd || openssl === undefined)("an etcd behind TLS (skipped without the program openssl)", () => {
  let server: EtcdServer;
  let files: { key: Buffer; cert: Buffer };
  beforeAll(async () => {
    server = await startEtcd(QUICK);
    files = selfSigned();
  });
  afterAll(() => server.end());

  /** Cuts the connection instead of passing on an answer with these letters. */
  async function secured(options: TlsOptions, cutAt?: string): Promise<string> {
    const front = createServer({ ...files, ...options }, (socket) => {
      const back = connect(server.port, "127.0.0.1");
      socket.on("error", () => back.destroy()).on("close", () => back.destroy());
      back.on("error", () => socket.destroy()).on("close", () => socket.destroy());
      back.on("data", (bytes) => {
        if (cutAt !== undefined && bytes.includes(cutAt)) socket.destroy();
      });
      socket.pipe(back).pipe(socket);
    });
    front.on("tlsClientError", () => undefined);
    await new Promise<void>((resolve) => {
      front.listen(0, "127.0.0.1", resolve);
    });
    onTestFinished(() => {
      front.close();
    });
    return `https://127.0.0.1:${(front.address() as AddressInfo).port}`;
  }

  test("an unknown authority is refused, and the message says how to trust it", async () => {
    const { seat } = seatAt(quickEtcd(await secured({})), freshScope());
    await expect(seat.acquire(never)).rejects.toMatchObject({
      code: "BACKEND_UNSUPPORTED",
      retryable: false,
      message: expect.stringMatching(/not trusted.*tls\.ca.*NODE_EXTRA_CA_CERTS/),
    });
  });

  test("a file that is no certificate is told from a network that fails", async () => {
    const { seat } = seatAt(quickEtcd(await secured({}), { tls: { cert: "not PEM", key: "not PEM" } }), freshScope());
    await expect(seat.acquire(never)).rejects.toMatchObject({
      code: "BACKEND_UNSUPPORTED",
      message: expect.stringMatching(/PEM/),
    });
  });

  test("trap 66: a write on a new connection is unknown where its answer is lost, and not where there was no handshake", async () => {
    const endpoint = await secured({}, '"succeeded":true');
    const key = btoa(`tenure/${freshScope()}`);
    const write = async (tls: TlsFiles): Promise<unknown> => {
      const session = new EtcdSession(httpWire({ endpoints: [new URL(endpoint)], headers: {}, tls }), undefined, 5_000);
      onTestFinished(() => session.close());
      return session.write({ success: [{ request_put: { key, value: btoa("1") } }] }, never);
    };
    await expect(write({})).rejects.toMatchObject({ code: "BACKEND_UNSUPPORTED" });
    expect((await api(server.endpoint, "kv/range", { key })).count).toBeUndefined();
    await expect(write({ ca: files.cert })).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    expect((await api(server.endpoint, "kv/range", { key })).count).toBe("1");
  });

  test("a trusted authority and a client certificate are used", async () => {
    const endpoint = await secured({ requestCert: true, rejectUnauthorized: true, ca: files.cert });
    const tls = { ca: files.cert, cert: files.cert, key: files.key };
    const { seat } = seatAt(quickEtcd(endpoint, { tls }), freshScope());
    const { epoch } = await seat.acquire(never);
    await seat.beat(epoch);
    const without = seatAt(quickEtcd(endpoint, { tls: { ca: files.cert } }), freshScope());
    await expect(without.seat.acquire(never)).rejects.toMatchObject({
      message: expect.stringMatching(/client certificate/),
    });
  });
});

function selfSigned(): { key: Buffer; cert: Buffer } {
  const directory = mkdtempSync(join(tmpdir(), "tenure-tls-"));
  const [key, cert] = [join(directory, "key.pem"), join(directory, "cert.pem")];
  const names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"];
  const files = ["-keyout", key, "-out", cert];
  execFileSync(
    openssl ?? "",
    [
      "req",
      "-x509",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:prime256v1",
      "-nodes",
      "-days",
      "2",
      ...names,
      ...files,
    ],
    { stdio: "ignore" },
  );
  const read = { key: readFileSync(key), cert: readFileSync(cert) };
  rmSync(directory, { recursive: true });
  return read;
}
