import { expect, test } from "vitest";
import { connectionFailure, refusalIn, refusalOf } from "./failures.ts";

test("etcd's refusals are read in each shape that it has", () => {
  const refused = { kind: "refused", code: 5, message: "m" };
  expect(refusalIn({ error: "m", message: "m", code: 5 })).toEqual(refused);
  expect(refusalIn({ code: 5, message: "m", details: [] })).toEqual(refused);
  expect(refusalIn({ error: { grpc_code: 5, http_code: 404, message: "m" } })).toEqual(refused);
  expect(refusalIn({ header: {}, ID: "1" })).toBeUndefined();
  expect(refusalIn(null)).toBeUndefined();
});

test.each([
  [404, "BACKEND_UNSUPPORTED"],
  [301, "BACKEND_UNSUPPORTED"],
  [403, "PERMISSION_DENIED"],
  [429, "BACKEND_UNAVAILABLE"],
  [502, "BACKEND_UNAVAILABLE"],
])("a foreign answer with HTTP %i is %s", (status, code) => {
  expect(() => refusalOf(status, "<html>", "http://a")).toThrow(expect.objectContaining({ code }));
});

test.each([
  ["ECONNREFUSED", "BACKEND_UNAVAILABLE"],
  ["ENOTFOUND", "BACKEND_UNAVAILABLE"],
  ["SOMETHING_NEW", "BACKEND_UNAVAILABLE"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "BACKEND_UNSUPPORTED"],
  ["CERT_HAS_EXPIRED", "BACKEND_UNSUPPORTED"],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "BACKEND_UNSUPPORTED"],
  ["HPE_INVALID_CONSTANT", "BACKEND_UNSUPPORTED"],
])("%s is %s", (code, expected) => {
  expect(connectionFailure(Object.assign(new Error("x"), { code }), "http://a").code).toBe(expected);
});

test("a name with two addresses tells the reason of the first", () => {
  const refused = Object.assign(new Error("x"), { code: "ECONNREFUSED" });
  expect(connectionFailure(new AggregateError([refused, refused]), "http://a").message).toContain("nothing listens");
});
