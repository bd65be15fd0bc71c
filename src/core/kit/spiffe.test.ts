import { expect, it } from "vitest";
import { formatSpiffeId, IDENTITY_KINDS, parseSpiffeId, serverNamed, uriNames } from "./spiffe.ts";

it("reads and writes every kind of identity", () => {
  for (const text of [
    "spiffe://tenure/server/n-1a2b",
    "spiffe://prod.example/operator/Alice.B",
    "spiffe://tenure/sdk/pay_2",
    "spiffe://tenure/tc/Orders.eu-1",
    ...IDENTITY_KINDS.map((kind) => `spiffe://tenure/${kind}/a-1`),
  ]) {
    expect(formatSpiffeId(parseSpiffeId(text)!)).toBe(text);
  }
});

it.each([
  "spiffe://tenure/server/N1",
  "spiffe://tenure/server/",
  "spiffe://tenure/server/n1/",
  "spiffe://tenure/server/n1?x",
  "spiffe://tenure/server/n1#x",
  "spiffe://tenure/server/n%31",
  "spiffe://TENURE/server/n1",
  "spiffe://tenure/root/n1",
  "SPIFFE://tenure/server/n1",
  "spiffe://tenure:1/server/n1",
  "spiffe://user@tenure/server/n1",
  "spiffe://tenure/server/n1\n",
  `spiffe://tenure/server/${"n".repeat(64)}`,
])("%j is no identity", (text) => {
  expect(parseSpiffeId(text)).toBeUndefined();
});

it("finds every URI in a certificate's names, and none inside another name", () => {
  expect(uriNames(undefined)).toEqual([]);
  expect(uriNames("DNS:localhost, URI:spiffe://tenure/server/n1, IP Address:127.0.0.1")).toEqual([
    "spiffe://tenure/server/n1",
  ]);
  expect(uriNames("URI:a, URI:b")).toEqual(["a", "b"]);
  // As Node writes a name that holds a comma: it is one name, and not two.
  expect(uriNames('DNS:"x, URI:spiffe://tenure/server/n1", DNS:y')).toEqual([]);
  expect(uriNames('URI:"a, URI:b\\" c", URI:d')).toEqual(['"a, URI:b\\" c"', "d"]);
});

it.each<[string, readonly string[], string | RegExp]>([
  ["one of this trust domain", ["spiffe://tenure/server/n1"], "n1"],
  ["none", [], /no URI name/],
  ["two, the first of them right", ["spiffe://tenure/server/n1", "https://example.org"], /2 URI names/],
  ["the same twice", ["spiffe://tenure/server/n1", "spiffe://tenure/server/n1"], /2 URI names/],
  ["of another domain", ["spiffe://other/server/n1"], /another trust domain than tenure/],
  ["of another kind", ["spiffe://tenure/tc/n1"], /names spiffe:\/\/tenure\/tc\/n1, not/],
  ["no identity", ["https://example.org/\u001b[2J"], /names https:\/\/example\.org\/\?\[2J, not/],
  ["long", [`spiffe://tenure/server/${"n".repeat(5_000)}`], /^.{0,250}$/],
])("whose server a certificate with these URI names is: %s", (_what, uris, expected) => {
  const named = serverNamed(uris, "tenure");
  if (typeof expected === "string") expect(named).toEqual({ ok: true, nodeId: expected });
  else expect(named).toEqual({ ok: false, message: expect.stringMatching(expected) as unknown });
});
