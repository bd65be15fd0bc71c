import { expect, it } from "vitest";
import type { Caller } from "../traffic/callers.ts";
import { serverIdOf } from "./tc-caller.ts";

const certificate = (kind: "server" | "tc" | "operator"): Caller => ({
  how: "certificate",
  name: `spiffe://tenure/${kind}/n1`,
  role: "viewer",
  identity: { trustDomain: "tenure", kind, name: "n1" },
});

it("a server's certificate is its node id", () => {
  expect(serverIdOf(certificate("server"))).toBe("n1");
});

it.each<[string, Caller]>([
  ["a transaction client", certificate("tc")],
  ["an operator", certificate("operator")],
  ["a server of another site", { ...certificate("server"), identity: null } as Caller],
  ["a key that is called as a server is", { how: "key", name: "spiffe://tenure/server/n1", role: "operator" }],
  ["nobody", { how: "anonymous", name: "anonymous", role: null }],
])("%s has no membership and no leases, should it ever get as far", (_who, caller) => {
  expect(() => serverIdOf(caller)).toThrow(expect.objectContaining({ code: "tc_cluster_identity_missing" }));
});
