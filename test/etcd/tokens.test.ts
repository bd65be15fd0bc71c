// An elector on an etcd with users, for longer than its token lives: tokens that expire, tokens of an older state of the users
// and rights, a password that is changed. The term goes on wherever the credentials are right.

import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { createElector, type Transition } from "../../src/entry/index.ts";
import { etcd } from "../../src/entry/etcd.ts";
import { type EtcdServer, startEtcd, waitFor } from "../servers/index.ts";
import { type Answer, api, freshScope, noEtcd, QUICK } from "./test-seat.ts";

const TOKEN_SECONDS = 1;
/** Beats come less often than tokens expire: etcd prolongs a simple token each time that it is used. */
const TTL_SECONDS = 8;
const HEARTBEAT_MS = 1_500;

type Ask = (path: string, body: object) => Promise<Answer>;

function jwtFlag(seconds: number): string {
  const directory = mkdtempSync(join(tmpdir(), "tenure-jwt-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const [pub, priv] = [join(directory, "jwt.pub"), join(directory, "jwt.key")];
  writeFileSync(pub, publicKey.export({ type: "spki", format: "pem" }));
  writeFileSync(priv, privateKey.export({ type: "pkcs1", format: "pem" }));
  return `--auth-token=jwt,pub-key=${pub},priv-key=${priv},sign-method=RS256,ttl=${seconds}s`;
}

async function withUsers(flags: readonly string[]): Promise<{ server: EtcdServer; asRoot: Ask }> {
  const server = await startEtcd([...QUICK, "--bcrypt-cost=4", ...flags]);
  onTestFinished(() => server.end());
  const ask: Ask = (path, body) => api(server.endpoint, `auth/${path}`, body);
  await ask("user/add", { name: "root", password: "rootpass" });
  await ask("user/grant", { user: "root", role: "root" });
  await ask("role/add", { name: "tenure" });
  const perm = { permType: "READWRITE", key: btoa("tenure/"), range_end: btoa("tenure0") };
  await ask("role/grant", { name: "tenure", perm });
  await ask("user/add", { name: "app", password: "first" });
  await ask("user/grant", { user: "app", role: "tenure" });
  await ask("enable", {});
  const asRoot: Ask = async (path, body) => {
    const { token } = await ask("authenticate", { name: "root", password: "rootpass" });
    return api(server.endpoint, `auth/${path}`, body, token);
  };
  return { server, asRoot };
}

function electorOf(server: EtcdServer, scope: string, password = "first") {
  const transitions: Transition[] = [];
  const backend = etcd({
    endpoints: server.endpoint,
    user: "app",
    password,
    ttlSeconds: TTL_SECONDS,
    heartbeatMs: HEARTBEAT_MS,
  });
  const elector = createElector({ scope, backend, onTransition: (one) => void transitions.push(one) });
  onTestFinished(() => elector.close());
  const beats = (): number => elector.stats().heartbeatUpdateMs.count;
  return { elector, transitions, beats };
}

describe.skipIf(noEtcd)("an elector on an etcd with users", () => {
  test.each([
    ["a simple token that expires between two heartbeats", () => `--auth-token-ttl=${TOKEN_SECONDS}`],
    ["a JWT that expires between two heartbeats", () => jwtFlag(TOKEN_SECONDS)],
    ["a JWT that does not expire", () => jwtFlag(600)],
  ])(
    "%s costs nothing, nor do users and rights that are changed",
    async (_, flag) => {
      const { server, asRoot } = await withUsers([flag()]);
      const scope = freshScope();
      const { elector, transitions, beats } = electorOf(server, scope);
      const term = await elector.acquire();
      const next = electorOf(server, scope);
      const waiting = next.elector.acquire();
      for (const change of ["none", "another user", "another role"]) {
        const before = beats();
        if (change === "another user") await asRoot("user/add", { name: freshScope(), password: "x" });
        if (change === "another role") await asRoot("role/add", { name: freshScope() });
        await waitFor(`two heartbeats after ${change}`, () => beats() >= before + 2);
      }
      expect(transitions.map(({ kind }) => kind)).toEqual(["campaigning", "leading"]);
      expect(term.check()).toBe(term.epoch);
      await term.txn({ success: [{ requestPut: { key: btoa(`tenure/${scope}/mine`), value: btoa("1") } }] });
      await term.resign();
      expect((await waiting).epoch).toBeGreaterThan(term.epoch);
    },
    60_000,
  );

  test("a password that is changed ends the term in time, and nobody leads twice; whoever has the new one leads next", async () => {
    const { server, asRoot } = await withUsers([`--auth-token-ttl=${TOKEN_SECONDS}`]);
    const scope = freshScope();
    const { elector } = electorOf(server, scope);
    const term = await elector.acquire();
    await asRoot("user/changepw", { name: "app", password: "second" });
    const next = await electorOf(server, scope, "second").elector.acquire();
    // etcd keeps the lease for as long as a silent leader costs; its own gate was closed before.
    expect(elector.gate.isLeader).toBe(false);
    expect(next.epoch).toBeGreaterThan(term.epoch);
    expect(await term.ended).toBe("expired");
  }, 60_000);
});
