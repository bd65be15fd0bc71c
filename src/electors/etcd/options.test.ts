import { describe, expect, test } from "vitest";
import { type EtcdOptions, etcdSettings } from "./options.ts";

describe("the options of etcd", () => {
  test("are complete with a URL alone", () => {
    const settings = etcdSettings("http://127.0.0.1:2379");
    expect(settings).toMatchObject({ prefix: "tenure/", ttlSeconds: 6, requestTimeoutMs: 1_125, pollMs: 2_000 });
    expect(settings.timing).toMatchObject({ serverTimeoutMs: 6_000, marginMs: 1_500, heartbeatMs: 1_000 });
  });

  test.each([
    ["http://a:2379,https://b:2379", ["http://a:2379/", "https://b:2379/"]],
    [
      ["etcd://a:2379", "etcds://b:2379"],
      ["http://a:2379/", "https://b:2379/"],
    ],
    [" http://a:2379/path ", ["http://a:2379/path"]],
  ])("take endpoints as %j", (endpoints, urls) => {
    expect(etcdSettings(endpoints).endpoints.map(String)).toEqual(urls);
  });

  test("take the credentials out of the URL", () => {
    const settings = etcdSettings("http://me:p%40ss@a:2379,http://b:2379");
    expect(settings.credentials).toEqual({ user: "me", password: "p@ss" });
    expect(settings.endpoints.map(String).join()).not.toContain("me");
  });

  test.each<[string, EtcdOptions, RegExp]>([
    ["no endpoint", { endpoints: [] }, /endpoints/],
    ["an empty one", { endpoints: "http://a:2379," }, /endpoints/],
    ["something that is no URL", { endpoints: "127.0.0.1:2379" }, /endpoint 1 is not a URL/],
    ["another scheme", { endpoints: ["http://a:1", "postgres://me:secret@a"] }, /endpoint 2 is not a URL/],
    ["numbers for endpoints", { endpoints: [2379] as never }, /endpoints/],
    ["half a second", { endpoints: "http://a:1", ttlSeconds: 0.5 }, /ttlSeconds.*whole/],
    ["an endless lease", { endpoints: "http://a:1", ttlSeconds: 1e6 }, /ttlSeconds/],
    ["no margin to speak of", { endpoints: "http://a:1", marginMs: -1 }, /marginMs/],
    ["a margin that eats the lease", { endpoints: "http://a:1", marginMs: 6_000 }, /marginMs/],
    ["beats that come too late", { endpoints: "http://a:1", heartbeatMs: 3_000 }, /heartbeatMs/],
    ["no number", { endpoints: "http://a:1", heartbeatMs: Number.NaN }, /heartbeatMs/],
    ["a password alone", { endpoints: "http://a:1", password: "secret" }, /without "user"/],
    ["a header that ends early", { endpoints: "http://a:1", headers: { "x-a": "secret\r\nx: y" } }, /"x-a"/],
    ["a header without a name", { endpoints: "http://a:1", headers: { "": "secret" } }, /headers/],
    ["an empty prefix", { endpoints: "http://a:1", prefix: "" }, /prefix/],
  ])("refuse %s", (_what, options, message) => {
    expect(() => etcdSettings(options)).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
    expect(() => etcdSettings(options)).toThrow(message);
    expect(() => etcdSettings(options)).not.toThrow(/secret/);
  });

  test("leave room for two beats of two requests, however short the lease", () => {
    for (const ttlSeconds of [1, 2, 3, 10, 60, 3_600]) {
      const { timing, requestTimeoutMs } = etcdSettings({ endpoints: "http://a:1", ttlSeconds });
      expect(4 * requestTimeoutMs).toBeLessThanOrEqual(timing.serverTimeoutMs - timing.marginMs);
      expect(timing.heartbeatMs * 4).toBeLessThanOrEqual(timing.serverTimeoutMs - timing.marginMs);
    }
  });
});
