// The client's file behind flags and variables: found, checked, and in effect where nobody said anything else.

import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import { readClientFile } from "./client-file.ts";
import { URL_DEFAULT } from "../kit/connection-help.ts";
import { readConnection } from "./connection.ts";
import { clientSettings } from "../config/client.ts";
import { LIST_OUTPUTS } from "../kit/output.ts";

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
  it("is the one that TENURE_CONFIG names, else tenure/config.toml of the user's configuration", async () => {
    const home = join(directory, "home");
    mkdirSync(join(home, ".config/tenure"), { recursive: true });
    const usual = join(home, ".config/tenure/config.toml");
    writeFileSync(usual, "output = 'json'\n");
    expect(await readClientFile({})).toBeNull();
    expect(await readClientFile({ HOME: join(directory, "nobody") })).toBeNull();
    expect((await readClientFile({ HOME: home }))?.path).toBe(usual);
    expect((await readClientFile({ XDG_CONFIG_HOME: join(home, ".config"), HOME: "/nowhere" }))?.path).toBe(usual);
    const named = file("");
    expect((await readClientFile({ HOME: home, TENURE_CONFIG: named }))?.path).toBe(named);
    expect((await readClientFile({ HOME: home, TENURE_CONFIG: "" }))?.path).toBe(usual);
    expect((await readClientFile({ HOME: home, TENURE_CONFIG: "/dev/null" }))?.says).toEqual({});
    await expect(readClientFile({ TENURE_CONFIG: "/nowhere" })).rejects.toThrow(
      "TENURE_CONFIG: /nowhere can't be read: there is no such file.",
    );
  });

  it("comes behind flags and variables, and before the defaults", async () => {
    const environment = said('url = ["http://a:1", "http://b:2"]\nkey = "k1"\noutput = "json"\n');
    expect(await readConnection({}, environment)).toMatchObject({
      urls: ["http://a:1", "http://b:2"],
      key: "k1",
      keyFrom: `key in ${environment.TENURE_CONFIG}`,
      output: "json",
    });
    const variables = { ...environment, TENURE_URL: "http://c:3", TENURE_API_KEY: "k2" };
    expect(await readConnection({}, variables)).toMatchObject({ urls: ["http://c:3"], key: "k2" });
    const flags = { url: "http://d:4", key: "k3", output: "table" };
    expect(await readConnection(flags, variables)).toMatchObject({ urls: ["http://d:4"], key: "k3", output: "table" });
    expect(await readConnection({}, said(""))).toMatchObject({ urls: [URL_DEFAULT], key: undefined, output: "table" });
  });

  it("names files from where it lies", async () => {
    writeFileSync(join(directory, "key"), "k9\n");
    expect(await readConnection({}, said('key_file = "key"'))).toMatchObject({ key: "k9" });
    await expect(readConnection({}, said('key_file = "none"'))).rejects.toThrow(
      `key_file: can't read ${directory}/none`,
    );
    await expect(readConnection({}, said('url = "https://a:1"\nca_file = "none"'))).rejects.toThrow(
      "ca_file: can't read",
    );
  });

  it("has a key for its own servers: to others it would be given away", async () => {
    const environment = said('url = ["http://a:1", "http://b:2"]\nkey = "secret"');
    expect(await readConnection({ url: "http://b:2" }, environment)).toMatchObject({ key: "secret" });
    expect(await readConnection({ url: "http://b:2,http://c:3" }, environment)).toMatchObject({ key: undefined });
    expect(await readConnection({}, { ...environment, TENURE_URL: "http://c:3" })).toMatchObject({ key: undefined });
    // Who names no servers has one key for all.
    expect(await readConnection({ url: "http://c:3" }, said('key = "secret"'))).toMatchObject({ key: "secret" });
  });

  it("knows whether anybody has named a server", async () => {
    expect((await readConnection({}, said(""))).isDefault).toBe(true);
    expect((await readConnection({ url: URL_DEFAULT }, said(""))).isDefault).toBe(false);
    expect((await readConnection({}, said('url = "http://a:1"'))).isDefault).toBe(false);
  });

  it("has an authority for its own servers: others that are given without TLS do not ask for it", async () => {
    const environment = said('url = "https://a:1"\nca_file = "none"');
    expect((await readConnection({ url: "http://127.0.0.1:7401" }, environment)).tls).toBeNull();
    await expect(readConnection({}, said('url = "http://a:1"\nca_file = "none"'))).rejects.toThrow(
      "ca_file is for https://",
    );
  });

  it("may ask for lines of JSON, which one object is not", async () => {
    const environment = said('output = "jsonl"');
    expect((await readConnection({}, environment, LIST_OUTPUTS)).output).toBe("jsonl");
    expect((await readConnection({}, environment)).output).toBe("json");
  });

  it("all that is wrong with it is told at once, and no key", async () => {
    const path = file('urls = 1\nurl = "a:1"\nkey = 4711\nkey_file = ""\noutput = "xml"\n');
    let message = "";
    try {
      await readConnection({}, { TENURE_CONFIG: path });
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

  it("with a key in it that others may read, is warned of", async () => {
    const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    try {
      await readConnection({}, { TENURE_CONFIG: file('key = "k"', 0o644) });
      expect(write).toHaveBeenCalledExactlyOnceWith(
        expect.stringMatching(/^tenure: warning: .* holds a key, and other/),
      );
      write.mockClear();
      await readConnection({}, { TENURE_CONFIG: file('key = "k"', 0o600) });
      await readConnection({}, { TENURE_CONFIG: file('output = "json"', 0o644) });
      expect(write).not.toHaveBeenCalled();
    } finally {
      write.mockRestore();
    }
  });
});

describe("tenure config show --client", () => {
  const of = async (environment: Record<string, string>) =>
    Object.fromEntries((await clientSettings(environment)).settings.map(({ key, ...rest }) => [key, rest]));

  it("says of each field who said so, and shows no key", async () => {
    const environment = { ...said('url = "http://a:1"\nkey = "geheim"'), TENURE_URL: "http://b:2" };
    expect(await of(environment)).toEqual({
      url: { value: "http://b:2", from: "environment", variable: "TENURE_URL" },
      key: { value: "…", from: "file", variable: null },
      key_file: { value: null, from: "default", variable: null },
      ca_file: { value: null, from: "default", variable: null },
      cert_file: { value: null, from: "default", variable: null },
      client_key_file: { value: null, from: "default", variable: null },
      output: { value: "table", from: "default", variable: null },
    });
  });

  it("shows the files of TLS, from where they are named", async () => {
    const environment = { ...said('ca_file = "ca.crt"\nclient_key_file = "me.key"'), TENURE_SERVERS_CA_FILE: "/ca" };
    expect(await of(environment)).toMatchObject({
      ca_file: { value: "/ca", from: "environment", variable: "TENURE_SERVERS_CA_FILE" },
      cert_file: { value: null, from: "default", variable: null },
      client_key_file: { value: join(directory, "me.key"), from: "file", variable: null },
    });
  });

  it("knows the variables that docs/reference/configuration.md lists, field by field", async () => {
    const [, table = ""] = readFileSync("docs/reference/configuration.md", "utf8").split("\n## Your own file\n");
    const rows = [...(table.split("\n## ")[0] ?? "").matchAll(/^\| `(\w+)` \| (?:`(TENURE_\w+)`|–) \|/gm)];
    expect(rows.length).toBeGreaterThan(5);
    for (const [, field = "", variable] of rows) {
      const found = (await of(variable === undefined ? {} : { [variable]: "x" }))[field];
      expect(found, field).toMatchObject(
        variable === undefined ? { from: "default" } : { from: "environment", variable },
      );
    }
  });

  it("shows the one key that counts", async () => {
    const environment = { ...said('key = "geheim"'), TENURE_API_KEY_FILE: "/k" };
    expect((await of(environment))["key"]).toMatchObject({ value: null, from: "default" });
    expect((await of(environment))["key_file"]).toMatchObject({ value: "/k", from: "environment" });
    const both = { ...environment, TENURE_API_KEY: "geheim" };
    expect((await of(both))["key"]).toMatchObject({ value: "…", from: "environment" });
    expect((await of(both))["key_file"]).toMatchObject({ value: null });
  });
});
