import fc from "fast-check";
import { expect, test } from "vitest";
import { fromBase64, parseKey, rangeEnd, scopeKeys, toBase64 } from "./keys.ts";

const scopeText = fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }).filter((text) => !text.includes("\0"));

test("no two scopes share a key, and none is inside another's history", () => {
  fc.assert(
    fc.property(scopeText, scopeText, (one, other) => {
      fc.pre(one !== other);
      const a = scopeKeys("tenure/", one);
      const b = scopeKeys("tenure/", other);
      expect(new Set([a.leader, a.resign, a.history, b.leader, b.resign, b.history]).size).toBe(6);
      expect([b.leader, b.resign, b.history].some((key) => key.startsWith(a.history))).toBe(false);
    }),
  );
});

test("a key tells its scope", () => {
  fc.assert(
    fc.property(scopeText, (scope) => {
      const { leader, history } = scopeKeys("my/prefix", scope);
      expect(parseKey("my/prefix", leader)).toEqual({ scope, name: "leader" });
      expect(parseKey("my/prefix", `${history}1-acquired`)).toEqual({ scope, name: "history/1-acquired" });
    }),
  );
});

test.each(["tenure/", "tenure/a", "tenure/a/leader/b", "tenure/%zz/leader", "other/a/leader", "tenure/a/something"])(
  "a key that we did not write belongs to no scope: %s",
  (key) => {
    expect(parseKey("tenure/", key)).toBeUndefined();
  },
);

test.each([
  ["nothing", "", "empty"],
  ["NUL", "a\0b", "NUL"],
  ["257 bytes", "x".repeat(257), "256"],
  ["258 bytes in 129 characters", "ü".repeat(129), "256"],
  ["half a character", "\ud800", "surrogate"],
])("a scope of %s is refused", (_what, scope, why) => {
  expect(() => scopeKeys("tenure/", scope)).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
  expect(() => scopeKeys("tenure/", scope)).toThrow(why);
});

test("the longest scope is taken", () => {
  expect(scopeKeys("tenure/", "ü".repeat(128)).leader).toContain("%C3%BC");
});

test("text survives base64", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      expect(fromBase64(toBase64(text))).toBe(text);
    }),
  );
  expect(fromBase64(toBase64("\ufeffmark"))).toBe("\ufeffmark");
});

test("a range ends behind the last key with its prefix", () => {
  expect(atob(rangeEnd("tenure/"))).toBe("tenure0");
});
