// The commands over TLS: an authority of one's own, a client certificate, and what is said where one of them is wrong.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { beforeAll, describe, expect, it } from "vitest";
import { certificateFetch } from "../../src/cli/connection/transport.ts";
import { viewOf } from "../../src/cli/cluster/test-cluster.ts";
import { toSnake } from "../../src/contract/snake-case.ts";
import { atTheEnd, start, tenure } from "./test-tenure.ts";

const directory = mkdtempSync(join(tmpdir(), "tenure-tls-"));
const inside = (name: string): string => join(directory, name);
let url: string;
const seen: { path: string | undefined; key: string | string[] | undefined; subject: string | undefined }[] = [];

beforeAll(async () => {
  atTheEnd(async () => rmSync(directory, { recursive: true, force: true }));
  for (const args of [
    ["init", "--dir", inside("ca")],
    ["init", "--dir", inside("other")],
    ["issue", "--dir", inside("ca"), "--out", inside("n1"), "--node-id", "n1", "--host", "127.0.0.1"],
    ["issue", "--dir", inside("ca"), "--out", inside("me"), "--operator", "alice"],
    ["issue", "--dir", inside("other"), "--out", inside("stranger"), "--operator", "mallory"],
  ]) {
    expect(await tenure("cert", ...args)).toMatchObject({ code: 0, stderr: "" });
  }
  const server = createServer(
    {
      ca: readFileSync(inside("ca/ca.crt")),
      cert: readFileSync(inside("n1/n1.crt")),
      key: readFileSync(inside("n1/n1.key")),
      minVersion: "TLSv1.3",
      requestCert: true,
      rejectUnauthorized: true,
    },
    (request, response) => {
      const { subjectaltname } = (request.socket as TLSSocket).getPeerCertificate();
      seen.push({ path: request.url, key: request.headers["x-api-key"], subject: subjectaltname });
      const odd = /^\/odd\/(\d+)$/.exec(request.url ?? "")?.[1];
      if (odd !== undefined) {
        // By hand: Node's own refuses to write some of these.
        const upgrade = odd === "101" ? "Connection: Upgrade\r\nUpgrade: x\r\n" : "Connection: close\r\n";
        request.socket.end(`HTTP/1.1 ${odd} Odd\r\n${upgrade}Content-Length: 0\r\n\r\n`);
        return;
      }
      if (request.url === "/leader") {
        response.writeHead(307, { location: "https://elsewhere.invalid/leader" }).end();
        return;
      }
      const members = viewOf("n1")
        .members.slice(0, 1)
        .map((member) => ({ ...member, url }));
      response.end(JSON.stringify(toSnake(viewOf("n1", { members }))));
    },
  );
  atTheEnd(async () => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

const ME = (): string[] => ["--cert", inside("me/operator-alice.crt"), "--client-key", inside("me/operator-alice.key")];

describe("tenure cluster over TLS", () => {
  it("knows the server by the given authority, and itself by its certificate", async () => {
    const { code, stdout, stderr } = await tenure(
      "cluster",
      "status",
      "--url",
      url,
      "--ca",
      inside("ca/ca.crt"),
      ...ME(),
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^leader +n1, term 7$/m);
    expect(seen.at(-1)?.subject).toBe("URI:spiffe://tenure/operator/alice");
  });

  it("takes the three files from variables or from the client's file as well, and names who named them", async () => {
    const variables = {
      TENURE_URL: url,
      TENURE_SERVERS_CA_FILE: inside("ca/ca.crt"),
      TENURE_SERVERS_CERT_FILE: inside("me/operator-alice.crt"),
      TENURE_SERVERS_KEY_FILE: inside("me/operator-alice.key"),
    };
    const config = inside("config.toml");
    writeFileSync(
      config,
      `url = "${url}"\nca_file = "ca/ca.crt"\ncert_file = "me/operator-alice.crt"\nclient_key_file = "me/operator-alice.key"\n`,
    );
    for (const environment of [variables, { TENURE_CONFIG: config }]) {
      const before = seen.length;
      expect(await start(["cluster", "status"], environment).ended).toMatchObject({ code: 0, stderr: "" });
      expect(seen.slice(before).map(({ subject }) => subject)).toContain("URI:spiffe://tenure/operator/alice");
    }
    const wrong = { ...variables, TENURE_SERVERS_KEY_FILE: inside("stranger/operator-mallory.key") };
    expect(await start(["cluster", "status"], wrong).ended).toMatchObject({
      code: 78,
      stderr: expect.stringMatching(
        /TENURE_SERVERS_KEY_FILE \S+mallory.key is not the key of TENURE_SERVERS_CERT_FILE \S+alice.crt/,
      ),
    });
  });

  it.each([
    ["without a client certificate", () => ["--ca", inside("ca/ca.crt")], /certificate required/],
    [
      "with a stranger's certificate",
      () => [
        "--ca",
        inside("ca/ca.crt"),
        "--cert",
        inside("stranger/operator-mallory.crt"),
        "--client-key",
        inside("stranger/operator-mallory.key"),
      ],
      /unknown ca|alert|reset/,
    ],
  ])("%s it is refused, and says why", async (_what, flags, message) => {
    const before = seen.length;
    const { code, stdout } = await tenure("cluster", "status", "--url", url, ...flags());
    expect(code).toBe(69);
    expect(stdout).toMatch(message);
    expect(seen).toHaveLength(before);
  });

  it.each([
    ["without any flag", ["cluster", "status"], () => []],
    ["without the authority", ["cluster", "status"], () => ME()],
    ["with another authority", ["cluster", "status"], () => ["--ca", inside("other/ca.crt"), ...ME()]],
    ["without the authority", ["cluster", "elections"], () => ME()],
    ["without the authority", ["cluster", "transfer"], () => ME()],
    ["without the authority", ["cluster", "snapshot", "save", inside("never.snap")], () => ME()],
    ["without the authority", ["member", "promote", "n2"], () => ME()],
  ])("%s a server is not trusted, nothing is sent, and the message of %j names --ca", async (_what, words, flags) => {
    const before = seen.length;
    const { code, stdout, stderr } = await tenure(...words, "--url", url, ...flags());
    expect({ code, stdout }).toEqual({ code: 78, stdout: "" });
    expect(stderr).toMatch(/certificate is not trusted \((self-signed|unable to).*--ca FILE/);
    expect(seen).toHaveLength(before);
  });

  it("refuses a certificate and a key that do not belong together, and what is no PEM, before it connects", async () => {
    const pair = ["--cert", inside("me/operator-alice.crt"), "--client-key", inside("stranger/operator-mallory.key")];
    const wrong = await tenure("cluster", "status", "--url", url, "--ca", inside("ca/ca.crt"), ...pair);
    expect(wrong).toMatchObject({ code: 78, stdout: "" });
    expect(wrong.stderr).toMatch(/--client-key \S+mallory.key is not the key of --cert \S+alice.crt/);
    const noPem = ["--cert", inside("me/operator-alice.key"), "--client-key", inside("me/operator-alice.crt")];
    const swapped = await tenure("cluster", "status", "--url", url, ...noPem);
    expect(swapped).toMatchObject({ code: 78, stderr: expect.stringMatching(/--cert .*--client-key .*can't be used/) });
  });

  it("trap 64: follows no redirect, and says that this is no leader", async () => {
    const { code, stderr } = await tenure(
      "cluster",
      "transfer",
      "--url",
      url,
      "--key",
      "secret",
      "--ca",
      inside("ca/ca.crt"),
      ...ME(),
    );
    expect(code).toBe(69);
    expect(stderr).toContain("it answered 307");
    expect(stderr).not.toContain("secret");
  }, 60_000);
});

describe("an odd status", () => {
  const fetchOf = () =>
    certificateFetch({
      ca: readFileSync(inside("ca/ca.crt"), "utf8"),
      cert: readFileSync(inside("me/operator-alice.crt"), "utf8"),
      key: readFileSync(inside("me/operator-alice.key"), "utf8"),
    });

  it.each([600, 999, 101])("%i rejects, and the process goes on", async (status) => {
    await expect(fetchOf()(`${url}/odd/${status}`, {})).rejects.toThrow(String(status));
  });

  it.each([204, 205, 304])("%i is an answer without a body, and names the node", async (status) => {
    const response = await fetchOf()(`${url}/odd/${status}`, {});
    expect([response.status, response.body, response.url]).toEqual([status, null, `${url}/odd/${status}`]);
  });
});
