// Whose client certificates count where the configuration does not say it.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { ServerConfig } from "../../contract/index.ts";
import { createCa, issue } from "../../drivers/pki/index.ts";
import { trustDomainOf } from "./api.ts";

const nowMs = Date.now();
const directory = mkdtempSync(join(tmpdir(), "tenure-trust-"));
const file = (name: string): string => join(directory, name);

beforeAll(async () => {
  for (const trustDomain of ["prod.example", "staging"]) {
    const ca = await createCa({ trustDomain, nowMs });
    writeFileSync(file(`${trustDomain}-ca.crt`), ca.cert);
    const node = await issue({ ca, identity: { trustDomain, kind: "server", name: "n1" }, nowMs });
    writeFileSync(file(`${trustDomain}.crt`), node.cert);
  }
});
afterAll(() => rmSync(directory, { recursive: true }));

const domain = (api: Partial<NonNullable<ServerConfig["api"]["tls"]>> | null, peer: string | null = null): string =>
  trustDomainOf({
    api: { tls: api === null ? null : { trustDomain: null, clientCaFile: null, ...api } },
    peer: { tls: peer === null ? null : { certFile: file(peer) } },
  } as unknown as ServerConfig);

it("that of the configuration, else of the node's own certificate, first the one for peers", () => {
  const certFile = file("staging.crt");
  expect(domain({ certFile, trustDomain: "own.example" }, "prod.example.crt")).toBe("own.example");
  expect(domain({ certFile }, "prod.example.crt")).toBe("prod.example");
  expect(domain({ certFile })).toBe("staging");
});

it("where the node's certificate names none, the organisation of the clients' authority, else tenure", () => {
  // An authority's own certificate has no URI, as one of a public authority has none.
  const certFile = file("staging-ca.crt");
  expect(domain({ certFile, clientCaFile: file("prod.example-ca.crt") })).toBe("prod.example");
  expect(domain({ certFile })).toBe("tenure");
  expect(domain(null)).toBe("tenure");
});
