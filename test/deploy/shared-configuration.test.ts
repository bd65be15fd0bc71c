// One tenure.toml for all nodes, as docs/server.md shows it: the very same file is given to three nodes, which differ in what their
// environment says. The names of the document become addresses of this machine, on which every node also needs ports and a data
// directory of its own; nothing else is changed.

import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { start as startTenure, type Said } from "../cli/test-tenure.ts";
import { removeDirectory, temporaryDirectory } from "../servers/directories.ts";
import { freePort, waitFor } from "../servers/index.ts";
import { ServerProcess } from "../servers/server-process.ts";
import { TENURE_MAIN } from "../servers/tenure-node.ts";
import { cleanEnvironment } from "./test-container.ts";

const NODES = ["n1", "n2", "n3"];
const HOST = "127.0.0.1";
const document = readFileSync("docs/server.md", "utf8");
const [, chapter = ""] = document.split("**2. One configuration for all.**");
const [text = ""] = chapter.split("**3. Start.**", 1);

function block(language: string): string {
  const [, found = ""] = new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``).exec(text) ?? [];
  return found;
}

const processes: ServerProcess[] = [];
const ports = new Map<string, { readonly peer: number; readonly api: number }>();
let directory: string;

beforeAll(async () => {
  directory = await temporaryDirectory("shared", undefined);
  for (const node of NODES) ports.set(node, { peer: await freePort(), api: await freePort() });
  const ca = join(directory, "ca");
  await cert("init", "--dir", ca);
  const shared = localised(block("toml"));
  for (const node of NODES) {
    const home = join(directory, node);
    mkdirSync(home);
    await cert("issue", "--dir", ca, "--out", join(directory, "issued"), "--node-id", node, "--host", HOST);
    cpSync(join(directory, "issued/ca.crt"), join(home, "ca.crt"));
    for (const end of ["crt", "key"]) cpSync(join(directory, `issued/${node}.${end}`), join(home, `node.${end}`));
    writeFileSync(join(home, "tenure.toml"), shared);
  }
  await cert("issue", "--dir", ca, "--out", join(directory, "me"), "--operator", "alice");
});
afterAll(async () => {
  await Promise.all(processes.map((one) => one.end("SIGKILL")));
  await removeDirectory(directory);
});

async function cert(...args: string[]): Promise<void> {
  expect(await startTenure(["cert", ...args]).ended).toMatchObject({ code: 0 });
}

function localised(said: string): string {
  return said.replaceAll(/\b(n\d)\.example\.net:(7400|7401)\b/g, (_, node: string, port: string) => {
    const { peer, api } = ports.get(node)!;
    return `${HOST}:${port === "7400" ? peer : api}`;
  });
}

/** What the document exports for n1, for this node; and what three nodes on one machine need besides. */
function environmentOf(node: string): Record<string, string> {
  const exported = [...block("sh").matchAll(/^export (TENURE_\w+)=(\S+)$/gm)];
  const { peer, api } = ports.get(node)!;
  return {
    ...Object.fromEntries(exported.map(([, name = "", value = ""]) => [name, localised(value.replaceAll("n1", node))])),
    TENURE_PEER_LISTEN: `0.0.0.0:${peer}`,
    TENURE_API_LISTEN: `0.0.0.0:${api}`,
    TENURE_DATA_DIR: join(directory, node, "data"),
  };
}

async function status(): Promise<Said> {
  const urls = NODES.map((node) => `https://${HOST}:${ports.get(node)!.api}`).join(",");
  const me = join(directory, "me");
  return await startTenure(["cluster", "status", "-o", "json"], {
    TENURE_URL: urls,
    TENURE_SERVERS_CA_FILE: join(me, "ca.crt"),
    TENURE_SERVERS_CERT_FILE: join(me, "operator-alice.crt"),
    TENURE_SERVERS_KEY_FILE: join(me, "operator-alice.key"),
  }).ended;
}

it("is valid on every node, without a warning", async () => {
  for (const node of NODES) {
    const said = await startTenure(
      ["config", "check", join(directory, node, "tenure.toml"), "-o", "json"],
      environmentOf(node),
    ).ended;
    expect(said, said.stderr).toMatchObject({ code: 0 });
    expect(JSON.parse(said.stdout)).toMatchObject({
      node_id: node,
      peer: { advertise: `${HOST}:${ports.get(node)!.peer}` },
      warnings: [],
    });
  }
});

it("makes three nodes one cluster", async () => {
  for (const node of NODES) {
    const flags = node === "n1" ? ["--bootstrap"] : [];
    processes.push(
      new ServerProcess({
        command: process.execPath,
        args: ["--no-warnings", TENURE_MAIN, "server", "start", "--config", "tenure.toml", ...flags],
        directory: join(directory, node),
        env: { ...cleanEnvironment(process.env["PATH"] ?? ""), ...environmentOf(node) },
        lastSignal: "SIGKILL",
      }),
    );
  }
  await waitFor(
    "three voters",
    async () => {
      const { code, stdout } = await status();
      if (code !== 0) return false;
      const { members } = JSON.parse(stdout) as { members: { kind: string; node_id: string }[] };
      return members.filter(({ kind }) => kind === "voter").length === NODES.length;
    },
    100_000,
  ).catch((error: unknown) => {
    throw new Error(`${(error as Error).message}\n${processes.map(({ log }) => log.slice(-1_500)).join("\n")}`);
  });
});
