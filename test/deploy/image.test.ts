// The image of deploy/docker/Dockerfile, made without Docker from Debian's own packages and the registry's, step by step, and a node that
// runs in it as compose.yaml runs it: as `node`, without capabilities, on a root that can't be written, with tini as process 1.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { removeDirectory, temporaryDirectory } from "../servers/directories.ts";
import { freePort, waitFor } from "../servers/index.ts";
import { type Image, ignores, ImageBuild, instructionsOf, ownerAndMode, processOne, whyNoImage } from "./test-image.ts";

const DOCKERFILE = "deploy/docker/Dockerfile";
const missing = whyNoImage();
if (missing !== undefined) console.log(`the image is not built: ${missing}`);

describe("what reads the Dockerfile", () => {
  it("joins lines and leaves comments out", () => {
    expect(instructionsOf('# a\nFROM x AS y\nRUN a && \\\n  b\n  # c\nCMD ["--help"]\n')).toEqual([
      { name: "FROM", text: "x AS y" },
      { name: "RUN", text: "a && b" },
      { name: "CMD", text: '["--help"]' },
    ]);
  });

  it("leaves out of the context what .dockerignore names, above all keys", () => {
    const skips = ignores(readFileSync(`${DOCKERFILE}.dockerignore`, "utf8"));
    for (const path of [
      ".git/HEAD",
      "node_modules",
      "web/node_modules/x",
      "dist/a.js",
      "n1.key",
      "a/b.pem",
      "ca/x",
      "test/a.ts",
    ])
      expect(skips(path), path).toBe(true);
    for (const path of [
      "package.json",
      "src/client/tls.ts",
      "docs/deploy.md",
      "web/src/main.tsx",
      "scripts/install.mjs",
    ])
      expect(skips(path), path).toBe(false);
  });
});

describe.skipIf(missing !== undefined)("the image", () => {
  let directory: string;
  let image: Image;

  beforeAll(async () => {
    directory = await temporaryDirectory("image", undefined);
    image = new ImageBuild(directory, ".").build(DOCKERFILE);
  }, 900_000);
  afterAll(() => removeDirectory(directory));

  it("has the command, in the version of the repository, and says what it can do when it is given nothing", () => {
    const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
    expect(image.run([...image.entrypoint, "version"])).toMatchObject({
      status: 0,
      stdout: expect.stringContaining(version) as string,
    });
    const { status, stdout } = image.run([...image.entrypoint, ...image.command]);
    expect({ status, stdout }).toMatchObject({ status: 0, stdout: expect.stringContaining("server") as string });
  });

  it("has a directory for data that is the user's alone, and lets him write nowhere else", () => {
    expect(ownerAndMode(join(image.root, "var/lib/tenure"))).toEqual({ uid: 1000, mode: "700" });
    expect(image.env).toEqual({ TENURE_DATA_DIR: "/var/lib/tenure" });
    const tried = image.run(["sh", "-c", "touch /var/lib/tenure/a /tmp/a && id -u && touch /etc/a"]);
    expect(tried).toMatchObject({
      status: 1,
      stdout: "1000\n",
      stderr: expect.stringContaining("Read-only") as string,
    });
  });

  it("runs a node that its own check calls healthy, takes orphans in, and ends in order at SIGTERM", async () => {
    const [peer, api] = [await freePort(), await freePort()];
    const url = `http://127.0.0.1:${api}`;
    mkdirSync(join(image.root, "etc/tenure"));
    const toml = `node_id = "n1"\n[peer]\nlisten = "127.0.0.1:${peer}"\nsecret_file = "/var/lib/tenure/peer-secret"\n[api]\nlisten = "127.0.0.1:${api}"\n[agent]\nenabled = false\n`;
    writeFileSync(join(image.root, "etc/tenure/tenure.toml"), toml);
    const check = () => image.run(image.healthcheck, { HEALTH_URL: `${url}/readyz` });
    expect(check()).toMatchObject({ status: 1, stdout: expect.stringContaining("ECONNREFUSED") as string });
    const server = ["server", "start", "--config", "/etc/tenure/tenure.toml", "--bootstrap"];
    const node = image.start([...image.entrypoint, ...server]);
    let log = "";
    for (const stream of [node.stdout, node.stderr]) stream?.on("data", (chunk: Buffer) => (log += chunk.toString()));
    const ended = new Promise((resolve) => node.once("exit", resolve));
    try {
      await waitFor("the node to be healthy", () => check().status === 0);
      // Without tini the command's orphan stays: Node takes leave only of children that it started itself.
      for (const [entrypoint, first, left] of [
        [image.entrypoint, "tini", 0],
        [["tenure"], "node-MainThread", 1],
      ] as const) {
        const agent = image.start([...entrypoint, "agent", "start", "--name=a", "--capacity=1", "--url", url]);
        const command = ["sh", "-c", "(true &) ; sleep 0.2; echo it ran"];
        const ran = image.run([...image.entrypoint, "job", "submit", "--url", url, "--", ...command]);
        expect(ran, log + ran.stderr).toMatchObject({ status: 0, stdout: "it ran\n" });
        const one = processOne(agent);
        expect(readFileSync(`/proc/${one}/comm`, "utf8").trim()).toBe(first);
        await waitFor(`${left} orphans below ${first}`, () => zombiesOf(one) === left);
        const agentEnded = new Promise((resolve) => agent.once("exit", resolve));
        process.kill(one, "SIGTERM");
        expect(await agentEnded, first).toBe(0);
      }
      process.kill(processOne(node), "SIGTERM");
      expect(await ended, log).toBe(0);
    } finally {
      node.kill("SIGKILL");
    }
  }, 180_000);
});

/** Children that have ended and that nobody has taken leave of. */
function zombiesOf(id: number): number {
  const children = readFileSync(`/proc/${id}/task/${id}/children`, "utf8").trim().split(" ").filter(Boolean);
  return children.filter((child) => / Z /.test(readFileSync(`/proc/${child}/stat`, "utf8"))).length;
}
