// Which files of TLS a command takes: by flag, by variable, by the client's file. test/cli/cluster-transport.test.ts uses them.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import { readConnection } from "./connection.ts";
import { UsageError } from "../kit/flags.ts";

const directory = mkdtempSync(join(tmpdir(), "tenure-connection-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function said(text: string): { TENURE_CONFIG: string } {
  const path = join(directory, "config.toml");
  writeFileSync(path, text, { mode: 0o600 });
  return { TENURE_CONFIG: path };
}

const HTTPS = { TENURE_URL: "https://a:1" };
const FILE = 'url = "https://a:1"\nca_file = "c"\ncert_file = "c"\nclient_key_file = "c"\n';
const VARIABLES = {
  TENURE_SERVERS_CA_FILE: "/nowhere/v",
  TENURE_SERVERS_CERT_FILE: "/nowhere/v",
  TENURE_SERVERS_KEY_FILE: "/nowhere/v",
};

describe("the files of TLS", () => {
  // The first that can't be read is the one that was chosen.
  it.each([
    [{ ca: "/nowhere/f" }, VARIABLES, "--ca: can't read /nowhere/f"],
    [{}, VARIABLES, "TENURE_SERVERS_CA_FILE: can't read /nowhere/v"],
    [{}, { ...VARIABLES, TENURE_SERVERS_CA_FILE: "" }, `ca_file: can't read ${directory}/c`],
    [{}, {}, `ca_file: can't read ${directory}/c`],
  ])("%j and %j: flags go before variables, those before the file", async (values, environment, message) => {
    await expect(readConnection(values, { ...environment, ...said(FILE) })).rejects.toThrow(message);
  });

  it.each([
    [{ cert: "/nowhere/f", "client-key": "/nowhere/f" }, VARIABLES, "--cert: can't read /nowhere/f"],
    [{}, VARIABLES, "TENURE_SERVERS_CERT_FILE: can't read /nowhere/v"],
    [{}, {}, `cert_file: can't read ${directory}/c`],
  ])("%j and %j: the same of a client certificate", async (values, environment, message) => {
    const file = said(FILE.replace(/ca_file.*\n/, ""));
    await expect(readConnection(values, { ...environment, TENURE_SERVERS_CA_FILE: "", ...file })).rejects.toThrow(
      message,
    );
  });

  it("a certificate needs its key, and the message names what was given, and what is missing there", async () => {
    const of = (environment: Record<string, string>) => readConnection({}, { ...HTTPS, ...environment });
    await expect(of({ TENURE_SERVERS_CERT_FILE: "x" })).rejects.toThrow(
      "TENURE_SERVERS_CERT_FILE needs TENURE_SERVERS_KEY_FILE too.",
    );
    await expect(of({ TENURE_SERVERS_KEY_FILE: "x" })).rejects.toThrow(
      "TENURE_SERVERS_KEY_FILE needs TENURE_SERVERS_CERT_FILE too.",
    );
    const file = said('url = "https://a:1"\ncert_file = "x"');
    await expect(readConnection({}, file)).rejects.toThrow(
      `${file.TENURE_CONFIG}: cert_file needs client_key_file too.`,
    );
    await expect(readConnection({}, file)).rejects.toBeInstanceOf(TenureError);
    await expect(readConnection({ cert: "x" }, HTTPS)).rejects.toBeInstanceOf(UsageError);
  });

  it("variables are for https:// alone: who asks a server of this machine has no use for them", async () => {
    expect(await readConnection({}, VARIABLES)).toMatchObject({ tls: null, certFrom: null });
    expect(await readConnection({ url: "http://127.0.0.1:7401" }, { ...HTTPS, ...VARIABLES })).toMatchObject({
      tls: null,
    });
  });

  it("the file's certificate is for the file's servers, as its key is", async () => {
    const others = { ...said(FILE.replace(/ca_file.*\n/, "")), TENURE_URL: "https://b:2" };
    expect((await readConnection({}, others)).tls).toBeNull();
    await expect(readConnection({}, said(FILE.replace("https:", "http:")))).rejects.toThrow("ca_file is for https://");
  });
});
