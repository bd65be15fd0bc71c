import { describe, expect, it } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import { serversSettings, serverUrl } from "./options.ts";

describe("the settings", () => {
  it("of nothing but URLs trust a lease of 6 s for 4.5 s, and beat every second", () => {
    const { timing, requestTimeoutMs, waitMs, budgetMs, learnMembers } = serversSettings(["https://n1", "https://n2"]);
    expect(timing).toMatchObject({ serverTimeoutMs: 6_000, marginMs: 1_500, heartbeatMs: 1_000 });
    expect({ requestTimeoutMs, waitMs, budgetMs, learnMembers }).toEqual({
      requestTimeoutMs: 1_125,
      waitMs: 3_000,
      budgetMs: 2_250,
      learnMembers: true,
    });
  });

  it("of a short TTL beat four times within its trust, and of a long one wait 20 s at most", () => {
    expect(serversSettings("http://n1", { ttlMs: 2_000 }).timing.heartbeatMs).toBe(375);
    expect(serversSettings("http://n1", { ttlMs: 600_000 }).waitMs).toBe(20_000);
  });

  it("have each node once, in one form", () => {
    expect(serversSettings("https://N1:443/, https://n1 ,https://n2/tenure/").urls).toEqual([
      "https://n1",
      "https://n2/tenure",
    ]);
  });
});

it.each([
  [[], {}, /list of 1 to 64/],
  ["", {}, /URL 1 is not one/],
  ["https://n1,", {}, /URL 2 is not one/],
  ["n1:7100", {}, /URL 1 is not one/],
  ["ftp://n1", {}, /URL 1 is not one/],
  ["https://user:secret@n1", {}, /without user, password and query/],
  ["https://n1?key=secret", {}, /without user, password and query/],
  ["https://n1,http://n2", {}, /some URLs are https:\/\/ and some http:\/\//],
  ["https://n1", { key: "secret\n" }, /line end/],
  ["https://n1", { ttlMs: 999 }, /"ttlMs" is 999/],
  ["https://n1", { ttlMs: 600_001 }, /"ttlMs"/],
  ["https://n1", { ttlMs: 1_500.5 }, /"ttlMs"/],
  ["https://n1", { marginMs: 3_001 }, /"marginMs" is 3001/],
  ["https://n1", { heartbeatMs: 2_251 }, /two of them must fit/],
])("%j with %j is refused, and no secret is repeated", (urls, options, message) => {
  expect(() => serversSettings(urls, options)).toThrow(TenureError);
  expect(() => serversSettings(urls, options)).toThrow(message);
  expect(() => serversSettings(urls, options)).not.toThrow(/secret/);
});

it("a URL that no server can have is none", () => {
  expect(["javascript:alert(1)", "", "//n1", "https://"].map((text) => serverUrl(text))).toEqual(
    Array.from({ length: 4 }, () => undefined),
  );
});
