// `[mesh]` of the configuration and the flags of `tenure server`: what is taken, what is refused, and in which words.

import { describe, expect, it } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import { electionConfig } from "../../core/raft/config.ts";
import type { MeshFlags } from "./mesh.ts";
import { parseServerConfig } from "./server.ts";

const MINIMAL = { node_id: "n1", data_dir: "data" };
const TLS = { api: { tls: { cert_file: "a.crt", key_file: "a.key" } } };
const DISTRIBUTED = { mode: "distributed" };

function parse(mesh: object, rest: object = {}, flags?: MeshFlags) {
  const surroundings = { environment: {}, configDir: "/etc/tenure", checkElection: electionConfig, mesh: flags };
  return parseServerConfig({ ...MINIMAL, ...rest, mesh }, surroundings).mesh;
}

function refusal(mesh: object, rest?: object, flags?: MeshFlags): string {
  try {
    parse(mesh, rest, flags);
  } catch (error) {
    if (TenureError.is(error) && error.code === "CONFIG_INVALID") return error.message;
    throw error;
  }
  throw new Error("was taken");
}

describe("what is taken", () => {
  it("parents under either name, each once; files from the configuration's directory", () => {
    const mesh = parse({
      ...DISTRIBUTED,
      parent_url: "http://a:7401/",
      parent_urls: ["http://a:7401", "https://b:7401"],
      key_file: "own.key",
      api_key_file: "/run/key",
      cert_file: "site.crt",
      cert_key_file: "/run/site.key",
      controller_id: "berlin",
      accept: "approved",
    });
    expect(mesh).toMatchObject({
      mode: "distributed",
      controllerId: "berlin",
      parentUrls: ["http://a:7401", "https://b:7401"],
      keyFile: "/etc/tenure/own.key",
      apiKeyFile: "/run/key",
      certificate: { certFile: "/etc/tenure/site.crt", keyFile: "/run/site.key" },
      accept: "approved",
    });
  });

  it("certificates of another site, by its own authority or by this cluster's", () => {
    const peers = [{ id: "b", ca_file: "b.pem", trust_domain: "b.example" }, { id: "c" }];
    expect(parse({ ...DISTRIBUTED, peers }, TLS).peers).toEqual([
      { id: "b", caFile: "/etc/tenure/b.pem", trustDomain: "b.example" },
      { id: "c", caFile: null, trustDomain: null },
    ]);
  });

  it("an id in a standalone site: it is given at the founding", () => {
    expect(parse({ controller_id: "berlin" })).toMatchObject({ mode: "standalone", controllerId: "berlin" });
  });

  it("flags, before the file: parents of the command line replace all of the file's", () => {
    const file = {
      mode: "standalone",
      controller_name: "x",
      parent_url: "http://old:1",
      parent_urls: ["http://older:1"],
    };
    const flags = { mode: "distributed", controller_id: "paris", parent_urls: ["http://new:1"] };
    expect(parse(file, {}, flags)).toMatchObject({
      mode: "distributed",
      controllerId: "paris",
      controllerName: "x",
      parentUrls: ["http://new:1"],
    });
    expect(parse({ ...DISTRIBUTED, parent_url: "http://old:1" }, {}, { controller_name: "y" })).toMatchObject({
      controllerName: "y",
      parentUrls: ["http://old:1"],
    });
  });
});

describe("what is refused", () => {
  it.each([
    [
      "parents of a standalone site",
      { parent_urls: ["http://a:1"] },
      {},
      /mesh\.parent_urls means nothing while mesh\.mode is standalone/,
    ],
    ["a mode that is none", { mode: "mesh" }, {}, /mesh\.mode must be one of standalone, distributed/],
    ["an id with a dot", { controller_id: "a.b" }, {}, /mesh\.controller_id must be a controller id/],
    [
      "a parent with a path",
      { ...DISTRIBUTED, parent_url: "http://a:1/x" },
      {},
      /mesh\.parent_url must be http:\/\/host:port/,
    ],
    [
      "a heartbeat that comes after the end",
      { ...DISTRIBUTED, registration_ttl_ms: 1_000, heartbeat_interval_ms: 1_000 },
      {},
      /mesh\.heartbeat_interval_ms must be shorter than mesh\.registration_ttl_ms/,
    ],
    ["a key for no parents", { ...DISTRIBUTED, api_key_file: "k" }, {}, /mesh\.api_key_file .* there are none/],
    ["a certificate without its key", { ...DISTRIBUTED, cert_file: "c" }, {}, /mesh\.cert_key_file is missing/],
    ["a certificate's key alone", { ...DISTRIBUTED, cert_key_file: "k" }, {}, /mesh\.cert_file is missing/],
    ["a certificate of a standalone site", { cert_file: "c", cert_key_file: "k" }, {}, /mesh\.cert_file means nothing/],
    ["a site on Postgres", DISTRIBUTED, { backend: "postgres://u@h/d" }, /mesh\.mode must be standalone with backend/],
    [
      "an authority without TLS",
      { ...DISTRIBUTED, peers: [{ id: "b", ca_file: "b.pem", trust_domain: "b" }] },
      {},
      /mesh\.peers\[0\]\.ca_file needs api\.tls/,
    ],
    [
      "an authority that may sign for any trust domain",
      { ...DISTRIBUTED, peers: [{ id: "b", ca_file: "b.pem" }] },
      TLS,
      /mesh\.peers\[0\]\.trust_domain is missing/,
    ],
    [
      "a trust domain that nobody signs for",
      { ...DISTRIBUTED, peers: [{ id: "b", trust_domain: "b" }] },
      TLS,
      /mesh\.peers\[0\]\.trust_domain needs ca_file/,
    ],
    [
      "this site as its own peer",
      { ...DISTRIBUTED, controller_id: "a", peers: [{ id: "a" }] },
      {},
      /peers\[0\]\.id is this site/,
    ],
    ["one peer twice", { ...DISTRIBUTED, peers: [{ id: "a" }, { id: "a" }] }, {}, /peers\[1\]\.id is given twice/],
  ])("%s", (_name, mesh, rest, message) => expect(refusal(mesh, rest)).toMatch(message));

  it("by the flag's name where a flag said it", () => {
    expect(refusal({}, {}, { mode: "both" })).toMatch(/--mode must be one of/);
    expect(refusal({}, {}, { parent_urls: ["http://a:1"] })).toMatch(/--parent-url means nothing while/);
    expect(refusal(DISTRIBUTED, {}, { parent_urls: ["nonsense"] })).toMatch(/--parent-url must be http/);
    expect(refusal({}, {}, { controller_id: "A" })).toMatch(/--controller-id must be a controller id/);
  });
});
