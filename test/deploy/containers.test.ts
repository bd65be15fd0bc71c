// deploy/docker without a container runtime: the compose file's own commands, arguments, configuration and scripts, run as plain
// processes with the paths and names of the containers replaced by those of a temporary directory. Images are not built here.

import { spawnSync, type SpawnSyncReturns } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { temporaryDirectory, removeDirectory } from "../servers/directories.ts";
import { freePort, waitFor } from "../servers/index.ts";
import { ServerProcess } from "../servers/server-process.ts";
import { cleanEnvironment, imagePath } from "./test-container.ts";

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}
interface Service {
  readonly command?: readonly string[];
  readonly entrypoint?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly depends_on?: Readonly<Record<string, unknown>>;
  readonly cap_drop?: readonly string[];
  readonly stop_grace_period?: string;
}

const NODES = ["n1", "n2", "n3"];
/** Of the image, not of npm. */
const TENURE = "tenure";
const compose = parse(readFileSync("deploy/docker/compose.yaml", "utf8"), { merge: true }) as Compose;
const bootstrap = parse(readFileSync("deploy/docker/compose.bootstrap.yaml", "utf8")) as Compose;
const dockerfile = readFileSync("deploy/docker/Dockerfile", "utf8");

function service(name: string): Service {
  const found = compose.services[name];
  if (found === undefined) throw new Error(`compose.yaml has no service ${name}`);
  return found;
}

describe("the files", () => {
  it("name volumes and services that exist", () => {
    for (const [name, { volumes = [], depends_on: needs = {} }] of Object.entries(compose.services)) {
      for (const from of volumes.map((text) => text.split(":")[0]!)) {
        if (from.startsWith("."))
          expect(() => readFileSync(join("deploy/docker", from)), `${name}: ${from}`).not.toThrow();
        else expect(compose.volumes, name).toHaveProperty(from);
      }
      for (const other of Object.keys(needs)) expect(compose.services, name).toHaveProperty(other);
    }
  });

  it("keep the authority's key from everybody but the one who signs, and --bootstrap out of what is run every day", () => {
    const withKey = Object.entries(compose.services).filter(([, { volumes = [] }]) =>
      volumes.some((one) => one.startsWith("ca:")),
    );
    expect(withKey.map(([name]) => name)).toEqual(["certificates"]);
    expect(JSON.stringify(compose.services)).not.toContain("--bootstrap");
    expect(bootstrap.services["n1"]?.command).toEqual([...service("n1").command!, "--bootstrap"]);
  });

  it("publish each node under the port that it tells clients, and give clients all of them", () => {
    const urls = NODES.map((node) => {
      const { environment = {}, ports } = service(node);
      const url = new URL(environment["TENURE_API_ADVERTISE"]!);
      expect(url.hostname).toBe(node);
      expect(ports).toEqual([`127.0.0.1:${url.port}:${url.port}`]);
      expect(environment).toMatchObject({
        TENURE_API_LISTEN: `0.0.0.0:${url.port}`,
        HEALTH_URL: `https://127.0.0.1:${url.port}/readyz`,
      });
      return url.origin;
    });
    expect(new Set(urls).size).toBe(NODES.length);
    for (const client of ["agent", "admin"]) expect(service(client).environment!["TENURE_URL"]).toBe(urls.join(","));
  });

  it("run nothing as root that listens, and give a node time to hand over", () => {
    expect(dockerfile).toMatch(/^USER node$/m);
    expect(dockerfile).toMatch(/^STOPSIGNAL SIGTERM$/m);
    for (const name of [...NODES, "agent"]) {
      expect(service(name)).toMatchObject({ cap_drop: ["ALL"], stop_grace_period: "90s" });
      expect(service(name)).not.toHaveProperty("user");
    }
  });
});

describe("three nodes and an agent, as compose.yaml starts them", () => {
  const processes = new Map<string, ServerProcess>();
  const api: Record<string, string> = {};
  let directory: string;
  let path: string;

  /** The container's paths and names are the test's; everything else stays as it is written. */
  function localised(text: string, name: string): string {
    return text
      .replaceAll("/etc/tenure/tenure.toml", join(directory, name, "tenure.toml"))
      .replaceAll("/tls/", `${join(directory, "tls", name)}/`)
      .replaceAll(/https:\/\/(n\d):740\d/g, (_, node: string) => `https://${api[node]}`);
  }

  function environment(name: string): Record<string, string> {
    const set = Object.entries(service(name).environment ?? {});
    return {
      ...cleanEnvironment(path),
      ...Object.fromEntries(set.map(([key, value]) => [key, localised(value, name)])),
    };
  }

  function start(name: string, command: readonly string[], extra: Readonly<Record<string, string>> = {}): void {
    const home = join(directory, name);
    mkdirSync(home, { recursive: true });
    const args = command.map((arg) => localised(arg, name));
    const env = { ...environment(name), ...extra };
    processes.set(name, new ServerProcess({ command: "tenure", args, directory: home, env, lastSignal: "SIGKILL" }));
  }

  /** `docker compose run --rm admin …` */
  function admin(...args: string[]): SpawnSyncReturns<string> {
    expect(service("admin"), "the image's own entrypoint passes on what is given").not.toHaveProperty("entrypoint");
    return spawnSync(TENURE, args, { env: environment("admin"), encoding: "utf8", timeout: 60_000 });
  }

  beforeAll(async () => {
    directory = await temporaryDirectory("containers", undefined);
    path = imagePath(directory);
    const [shell = "", script = ""] = service("certificates").entrypoint!;
    expect(script).toBe("/certificates.sh");
    const certificates = (): SpawnSyncReturns<string> =>
      spawnSync(shell, [resolve("deploy/docker/certificates.sh"), join(directory, "tls")], {
        env: cleanEnvironment(path),
        encoding: "utf8",
      });
    expect(certificates()).toMatchObject({ status: 0 });
    // Once more: it renews, and keeps the keys.
    expect(certificates()).toMatchObject({ status: 0, stdout: expect.not.stringContaining("its key, new") as string });
    const peers: Record<string, string> = {};
    for (const node of NODES) {
      api[node] = `127.0.0.1:${await freePort()}`;
      peers[node] = `127.0.0.1:${await freePort()}`;
    }
    for (const node of NODES) {
      const config = localised(readFileSync("deploy/docker/tenure.toml", "utf8"), node);
      mkdirSync(join(directory, node), { recursive: true });
      writeFileSync(
        join(directory, node, "tenure.toml"),
        config.replaceAll(/\b(n\d):7400/g, (_, name: string) => peers[name]!),
      );
      start(node, node === "n1" ? bootstrap.services["n1"]!.command! : service(node).command!, {
        TENURE_DATA_DIR: join(directory, node, "data"),
        TENURE_PEER_LISTEN: peers[node]!,
        TENURE_API_LISTEN: api[node]!,
      });
    }
    await waitFor("three healthy voters", () => {
      const { stdout } = admin("cluster", "status", "-o", "json");
      if (!stdout.startsWith("{")) return false;
      const { voters, working } = JSON.parse(stdout) as { voters: number; working: number };
      return voters === 3 && working === 3;
    });
  }, 120_000);

  afterAll(async () => {
    await Promise.all([...processes.values()].map((one) => one.end("SIGKILL")));
    await removeDirectory(directory);
  });

  it("every node is healthy by the image's own check; one that is not there is not", async () => {
    const check = (url: string): SpawnSyncReturns<string> =>
      spawnSync(process.execPath, ["deploy/docker/healthcheck.mjs"], {
        env: { ...cleanEnvironment(path), HEALTH_URL: url },
        encoding: "utf8",
      });
    for (const node of NODES) {
      await waitFor(`${node} to be ready`, () => check(`https://${api[node]}/readyz`).status === 0);
    }
    expect(check(`https://127.0.0.1:${await freePort()}/readyz`)).toMatchObject({
      status: 1,
      stdout: expect.stringContaining("ECONNREFUSED") as string,
    });
    expect(check(`https://${api["n1"]}/nothing`).status).toBe(1);
  });

  it("the agent runs a command that the operator submits", async () => {
    start("agent", service("agent").command!);
    const ran = admin("job", "submit", "--", "echo", "it", "ran");
    expect(ran, processes.get("agent")!.log + ran.stderr).toMatchObject({ status: 0, stdout: "it ran\n" });
  });

  it("SIGHUP to what a container runs takes a renewed certificate over", async () => {
    const n1 = processes.get("n1")!;
    expect(n1.log).not.toContain('"event":"reloaded"');
    n1.signal("SIGHUP");
    await waitFor("it to say so", () => n1.log.includes('"event":"reloaded"'));
  });

  it("SIGTERM ends all of them in order", async () => {
    for (const name of ["agent", ...NODES.toReversed()]) {
      const one = processes.get(name);
      await one?.end("SIGTERM");
      expect(one?.exitCode, `${name}: ${one?.log}`).toBe(0);
    }
  });
});
