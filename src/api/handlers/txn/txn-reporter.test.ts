import { expect, it } from "vitest";
import type { PeerKey } from "../../../core/kit/ids.ts";
import type { MembersView, RegistryView } from "../../../ports/coordinators.ts";
import type { Caller } from "../../traffic/callers.ts";
import { mustBeOf } from "./txn-reporter.ts";

const [A, B] = ["a".repeat(64), "b".repeat(64)] as const;
const coordinators = {
  members: (): MembersView => ({
    endpoints: [],
    leases: [{ identity: "b2", endpoint: "https://b2:1", updatedAtMs: 0, expiresAtMs: 1 }],
    updatedAtMs: 0,
    voters: [
      { peer: "a1@0a" as PeerKey, endpoint: "https://a1:1", state: "unknown" },
      { peer: "b1@0b" as PeerKey, endpoint: "https://b1:1", state: "unknown" },
      { peer: "new@0c" as PeerKey, endpoint: "https://new:1", state: "unknown" },
    ],
    quorum: 2,
    roster: null,
  }),
  registry: (): RegistryView => ({
    entries: [
      { backendHash: A, endpoint: "https://a1:1" },
      { backendHash: B, endpoint: "https://b1:1" },
      { backendHash: B, endpoint: "https://b2:1" },
    ],
    updatedAtMs: 1,
  }),
};

function server(name: string): Caller {
  return {
    how: "certificate",
    name: `spiffe://tenure/server/${name}`,
    role: "viewer",
    identity: { trustDomain: "tenure", kind: "server", name },
  };
}

it("a server reports for the island as which it is registered, by its seat or by its membership", () => {
  expect(() => mustBeOf(A, server("a1"), coordinators)).not.toThrow();
  expect(() => mustBeOf(B, server("b2"), coordinators)).not.toThrow();
});

it.each(["b1", "b2"])("%s is of another island: it is not believed", (name) => {
  expect(() => mustBeOf(A, server(name), coordinators)).toThrow(expect.objectContaining({ code: "tc_forbidden" }));
});

it("is believed where nothing is known of it: an island must be able to report whatever the registry lacks", () => {
  for (const name of ["new", "stranger"]) expect(() => mustBeOf(A, server(name), coordinators)).not.toThrow();
  expect(() => mustBeOf(A, server("b1"), undefined)).not.toThrow();
  expect(() => mustBeOf(A, { how: "anonymous", name: "anonymous", role: null }, coordinators)).not.toThrow();
});
