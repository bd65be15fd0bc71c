// The client's file behind flags and variables: found, checked, and in effect where nobody said anything else.

import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import { TenureError } from "../core/kit/errors.ts";
import { readClientFile } from "./cluster-client-file.ts";
import { readConnection, URL_DEFAULT } from "./cluster-connection.ts";
import { clientSettings } from "./config-client.ts";
import { LIST_OUTPUTS } from "./output.ts";

const directory = mkdtempSync(join(tmpdir(), "tenure-client-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

let files = 0;
function file(text: string, mode = 0o600): string {
  const path = join(directory, `${++files}.toml`);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

const said = (text: string) => ({ TENURE_CONFIG: file(text) });

describe("the client's file", () => {
  it("is the one that TENURE_CONFIG names, else tenure/config.toml of the user's configuration", () => {
    const home = join(directory, "home");
    mkdirSync(join(home, ".config/tenure"), { recursive: true });
    const usual = join(home, ".config/tenure/config.toml");
    writeFileSync(usual, "output = 'json'\n");
    expect(readClientFile({})).toBeNull();
    expect(readClientFile({ HOME: join(directory, "nobody") })).toBeNull();
    expect(readClientFile({ HOME: home })?.path).toBe(usual);
    expect(readClientFile({ XDG_CONFIG_HOME: join(home, ".config"), HOME: "/nowhere" })?.path).toBe(usual);
    const named = file("");
    expect(readClientFile({ HOME: home, TENURE_CONFIG: named })?.path).toBe(named);
    expect(readClientFile({ HOME: home, TENURE_CONFIG: "" })?.path).toBe(usual);
    expect(readClientFile({ HOME: home, TENURE_CONFIG: "/dev/null" })?.says).toEqual({});
    expect(() => readClientFile({ TENURE_CONFIG: "/nowhere" })).toThrow(
      "TENURE_CONFIG: /nowhere can't be read: there is no such file.",
    );
  });

  it("comes behind flags and variables, and before the defaults", () => {
    const environment = said('url = ["http://a:1", "http://b:2"]\nkey = "k1"\noutput = "json"\n');
    expect(readConnection({}, environment)).toMatchObject({
      urls: ["http://a:1", "http://b:2"],
      key: "k1",
      keyFrom: `key in ${environment.TENURE_CONFIG}`,
      output: "json",
    });
    const variables = { ...environment, TENURE_URL: "http://c:3", TENURE_API_KEY: "k2" };
    expect(readConnection({}, variables)).toMatchObject({ urls: ["http://c:3"], key: "k2" });
    const flags = { url: "http://d:4", key: "k3", output: "table" };
    expect(readConnection(flags, variables)).toMatchObject({ urls: ["http://d:4"], key: "k3", output: "table" });
    expect(readConnection({}, said(""))).toMatchObject({ urls: [URL_DEFAULT], key: undefined, output: "table" });
  });

  it("names files from where it lies", () => {
    writeFileSync(join(directory, "key"), "k9\n");
    expect(readConnection({}, said('key_file = "key"'))).toMatchObject({ key: "k9" });
    expect(() => readConnection({}, said('key_file = "none"'))).toThrow(`key_file: can't read ${directory}/none`);
    expect(() => readConnection({}, said('url = "https://a:1"\nca_file = "none"'))).toThrow("ca_file: can't read");
  });

  it("has a key for its own servers: to others it would be given away", () => {
    const environment = said('url = ["http://a:1", "http://b:2"]\nkey = "secret"');
    expect(readConnection({ url: "http://b:2" }, environment)).toMatchObject({ key: "secret" });
    expect(readConnection({ url: "http://b:2,http://c:3" }, environment)).toMatchObject({ key: undefined });
    expect(readConnection({}, { ...environment, TENURE_URL: "http://c:3" })).toMatchObject({ key: undefined });
    // Who names no servers has one key for all.
    expect(readConnection({ url: "http://c:3" }, said('key = "secret"'))).toMatchObject({ key: "secret" });
  });

  it("knows whether anybody has named a server", () => {
    expect(readConnection({}, said("")).isDefault).toBe(true);
    expect(readConnection({ url: URL_DEFAULT }, said("")).isDefault).toBe(false);
    expect(readConnection({}, said('url = "http://a:1"')).isDefault).toBe(false);
  });

  it("has an authority for its own servers: others that are given without TLS do not ask for it", () => {
    const environment = said('url = "https://a:1"\nca_file = "none"');
    expect(readConnection({ url: "http://127.0.0.1:7401" }, environment).tls).toBeNull();
    expect(() => readConnection({}, said('url = "http://a:1"\nca_file = "none"'))).toThrow("ca_file is for https://");
  });

  it("may ask for lines of JSON, which one object is not", () => {
    const environment = said('output = "jsonl"');
    expect(readConnection({}, environment, LIST_OUTPUTS).output).toBe("jsonl");
    expect(readConnection({}, environment).output).toBe("json");
  });

  it("all that is wrong with it is told at once, and no key", () => {
    const path = file('urls = 1\nurl = "a:1"\nkey = 4711\nkey_file = ""\noutput = "xml"\n');
    let message = "";
    try {
      readConnection({}, { TENURE_CONFIG: path });
    } catch (error) {
      if (!TenureError.is(error) || error.code !== "CONFIG_INVALID") throw error;
      message = error.message;
    }
    expect(message.split("\n")).toEqual([
      `${path} is not valid:`,
      "  urls is not known; did you mean url?",
      '  url must be http://host:port or https://host:port, or a list of those, without a path, a query or a password, found "a:1"',
      "  key must be a text, found a number",
      "  key_file must not be empty",
      '  output must be one of table, json, jsonl, found "xml"',
      "  key_file stands beside key: leave one of the two out",
      "docs/reference/configuration.md lists every field.",
    ]);
  });

  it("with a key in it that others may read, is warned of", () => {
    const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    try {
      readConnection({}, { TENURE_CONFIG: file('key = "k"', 0o644) });
      expect(write).toHaveBeenCalledExactlyOnceWith(
        expect.stringMatching(/^tenure: warning: .* holds a key, and other/),
      );
      write.mockClear();
      readConnection({}, { TENURE_CONFIG: file('key = "k"', 0o600) });
      readConnection({}, { TENURE_CONFIG: file('output = "json"', 0o644) });
      expect(write).not.toHaveBeenCalled();
    } finally {
      write.mockRestore();
    }
  });
});

describe("tenure config show --client", () => {
  const of = (environment: Record<string, string>) =>
    Object.fromEntries(clientSettings(environment).settings.map(({ key, ...rest }) => [key, rest]));

  it("says of each field who said so, and shows no key", () => {
    const environment = { ...said('url = "http://a:1"\nkey = "geheim"'), TENURE_URL: "http://b:2" };
    expect(of(environment)).toEqual({
      url: { value: "http://b:2", from: "environment", variable: "TENURE_URL" },
      key: { value: "…", from: "file", variable: null },
      key_file: { value: null, from: "default", variable: null },
      ca_file: { value: null, from: "default", variable: null },
      output: { value: "table", from: "default", variable: null },
    });
  });

  it("shows the one key that counts", () => {
    const environment = { ...said('key = "geheim"'), TENURE_API_KEY_FILE: "/k" };
    expect(of(environment)["key"]).toMatchObject({ value: null, from: "default" });
    expect(of(environment)["key_file"]).toMatchObject({ value: "/k", from: "environment" });
    const both = { ...environment, TENURE_API_KEY: "geheim" };
    expect(of(both)["key"]).toMatchObject({ value: "…", from: "environment" });
    expect(of(both)["key_file"]).toMatchObject({ value: null });
  });
});
