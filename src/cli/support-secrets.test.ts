import { describe, expect, it } from "vitest";
import { hider } from "./support-secrets.ts";

const PEM = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\n-----END PRIVATE KEY-----";

describe("what leaves this machine", () => {
  const hide = hider(["s3cret-key", "", "ab"]);
  it.each([
    ["it knows s3cret-key, and s3cret-key again", "it knows …, and … again"],
    ["postgres://ada:pa55@db:5432/app?x=1", "postgres://ada:…@db:5432/app?x=1"],
    ["postgres://ada:p@a/5:5@db/app is there", "postgres://ada:…@db/app is there"],
    ['{"msg":"can\'t reach redis://:hunter2@cache"}', '{"msg":"can\'t reach redis://:…@cache"}'],
    [`key: ${PEM}, end`, "key: [private key …], end"],
    [JSON.stringify({ stack: `bad ${PEM}` }), '{"stack":"bad [private key …]"}'],
    ["-----BEGIN EC PRIVATE KEY-----\nMIGH", "[private key …]"],
    ['{"password":"hunter2","a":1}', '{"password":"…","a":1}'],
    ['{"x":"{\\"api_key\\":\\"abc\\"}"}', '{"x":"{\\"api_key\\":\\"…\\"}"}'],
    ["X-API-Key: abc123, next", "X-API-Key: …, next"],
    ["?token=abc&b=2", "?token=…&b=2"],
  ])("%s", (text, hidden) => expect(hide(text)).toBe(hidden));

  it.each([
    "https://n1.example.net:7401/v1/cluster",
    "spiffe://tenure/operator/ada",
    '{"level":30,"term":7,"leader":"n1@3f9a","msg":"about ab"}',
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "the password was refused",
  ])("leaves %s as it is", (text) => expect(hide(text)).toBe(text));
});
