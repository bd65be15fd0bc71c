// Which addresses this site calls, and which get its key: its parents, and registered ones only where nobody can make it call somewhere else (no SSRF).

import { expect, it } from "vitest";
import type { ServerConfig } from "../../contract/index.ts";
import { callable } from "./mesh.ts";

function config(host: string, dialRegistered = false): Pick<ServerConfig, "mesh" | "api"> {
  const mesh = { parentUrls: ["https://hub.example:7401"], dialRegistered };
  return { mesh, api: { listen: { host, port: 7401 } } } as unknown as Pick<ServerConfig, "mesh" | "api">;
}

it.each([
  ["the parent", "10.0.0.1", false, "https://hub.example:7401", "key"],
  ["another port of the parent's host", "10.0.0.1", false, "https://hub.example:22", "nothing"],
  ["the parent without TLS", "10.0.0.1", false, "http://hub.example:7401", "nothing"],
  ["a registered address", "10.0.0.1", false, "https://elsewhere.example", "nothing"],
  ["loopback, from a site that is on the network", "10.0.0.1", false, "http://127.0.0.1:7401", "nothing"],
  ["metadata of a cloud", "127.0.0.1", false, "http://169.254.169.254", "nothing"],
  ["loopback, from a site on loopback", "127.0.0.1", false, "http://127.0.0.1:9", "key"],
  ["loopback, in IPv6", "127.0.0.1", false, "http://[::1]:9", "key"],
  ["a registered address, allowed", "10.0.0.1", true, "https://elsewhere.example", "certificate"],
  ["the same without TLS", "10.0.0.1", true, "http://elsewhere.example", "nothing"],
])("%s", (_name, host, dialRegistered, url, expected) => {
  expect(callable(config(host, dialRegistered))(new URL(url))).toBe(expected);
});
