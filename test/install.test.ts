// Both packages as a stranger gets them: packed, installed by npm into an empty folder, and used there as their READMEs say. The
// dependencies of the server come from the registry; where it can't be reached, these skip themselves.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packed, type Packed } from "./packages.ts";
import { removeDirectory, temporaryDirectory } from "./servers/directories.ts";
import { freePort, type PostgresServer, startPostgres, waitFor } from "./servers/index.ts";
import { ServerProcess } from "./servers/server-process.ts";

/** As it is installed there, by the PATH. */
const TENURE = "tenure";
const NPM_FLAGS = ["--no-audit", "--no-fund", "--loglevel=error", "--prefer-offline"];
const hasRegistry = spawnSync("npm", ["ping", "--loglevel=silent"], { timeout: 20_000 }).status === 0;
if (!hasRegistry) console.log("the package registry can't be reached: tenure-server is not installed");

let directory: string;
let path: string;
let library: Packed;
let servers: Packed;

beforeAll(async () => {
  directory = await temporaryDirectory("install", undefined);
  path = `${resolve("node_modules/.bin")}:${process.env["PATH"] ?? ""}`;
  library = packed("tenure", directory);
  servers = packed("tenure-server", directory);
}, 300_000);
afterAll(() => removeDirectory(directory));

/** The folder in which npm has installed it. */
function installed(name: string, { tarball }: Packed): string {
  const home = join(directory, name);
  mkdirSync(home);
  writeFileSync(join(home, "package.json"), '{ "private": true, "type": "module" }');
  const env = { ...process.env, PATH: path };
  execFileSync("npm", ["install", tarball, "--omit=peer", ...NPM_FLAGS], { cwd: home, env });
  return home;
}

/** The code blocks of a README in one language, in order. */
function blocks(file: string, language: string): string[] {
  const found = readFileSync(file, "utf8").matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "gm"));
  return [...found].map(([, text = ""]) => text);
}

describe.each(["tenure", "tenure-server"] as const)("the tarball of %s", (name) => {
  const tarball = (): string => (name === "tenure" ? library : servers).tarball;

  it("has nothing that publint would change", async () => {
    const { messages, pkg } = await publint({ pack: { tarball: readFileSync(tarball()).buffer }, strict: true });
    expect(messages.map((message) => formatMessage(message, pkg) ?? message.code)).toEqual([]);
  });

  it("has types that are right for every way to import it that attw knows", () => {
    // Two findings are meant so. `node10`: no `exports` are known to that way of resolving, of Node 10; both packages need Node 22 and more.
    // `cjs-resolves-to-esm`: there is one build, of ES modules, which Node 22.12 and later `require` as well (test/runtimes.test.ts does).
    const meant = ["--profile", "node16", "--ignore-rules", "cjs-resolves-to-esm"];
    const attw = (...flags: string[]) =>
      spawnSync(join("test/node_modules/.bin", "attw"), [tarball(), "--format", "ascii", "--no-emoji", ...flags], {
        env: { ...process.env, PATH: path },
        encoding: "utf8",
      });
    const asked = attw(...meant);
    expect(asked, asked.stdout).toMatchObject({
      status: 0,
      stdout: expect.stringContaining(`"${name}/package.json"`) as string,
    });
    expect(attw()).toMatchObject({ status: 1, stdout: expect.stringContaining("Resolution failed") as string });
  });
});

describe.skipIf(!hasRegistry)("the two doors of README.md, word for word in an empty folder", () => {
  const [one = "", two = ""] = blocks("README.md", "sh");

  /** Next to the packages, which the README has from a clone. */
  function ran(block: string, folder: string, env: Readonly<Record<string, string>>) {
    const home = join(directory, folder);
    mkdirSync(home);
    const options = {
      cwd: home,
      env: { ...process.env, PATH: path, ...env },
      encoding: "utf8",
      timeout: 280_000,
    } as const;
    return spawnSync("bash", ["-e", "-c", block], options);
  }

  it("one leader: the leader is killed, and the next one writes in the next epoch", { timeout: 300_000 }, async () => {
    const postgres = await startPostgres();
    try {
      const { status, stdout, stderr } = ran(one, "door-one", { DATABASE_URL: postgres.url() });
      expect(status, stdout + stderr).toBe(0);
      const led = [...stdout.matchAll(/process (\d+) leads in epoch (\d+)/g)].map(([, pid, epoch]) => ({ pid, epoch }));
      expect(led, stdout).toHaveLength(2);
      expect(led[0]!.pid).not.toBe(led[1]!.pid);
      expect(Number(led[1]!.epoch)).toBeGreaterThan(Number(led[0]!.epoch));
      const epochs = await postgres.query<{ epoch: string }>("select distinct epoch from payouts order by epoch");
      expect(epochs.map(({ epoch }) => epoch)).toEqual(led.map(({ epoch }) => epoch));
    } finally {
      await postgres.end();
    }
  });

  it("jobs: three nodes lose their leader twice, and no job", { timeout: 300_000 }, () => {
    const { status, stdout, stderr } = ran(two, "door-two", {});
    expect(status, stdout + stderr).toBe(0);
    expect(stdout.match(/kill -9 n\d/g)).toHaveLength(2);
    expect(stdout.trimEnd().split("\n").at(-1)).toMatch(/ended; \d+ jobs were accepted, 0 were lost$/);
  });
});

describe("tenure", () => {
  let home: string;
  let postgres: PostgresServer;
  beforeAll(async () => {
    home = installed("home", library);
    postgres = await startPostgres();
  }, 120_000);
  afterAll(() => postgres?.end());

  it("runs the README's first lines on a real Postgres", () => {
    symlinkSync(resolve("node_modules/pg"), join(home, "node_modules/pg"));
    const [snippet = ""] = blocks("README.md", "ts");
    expect(snippet).toContain("payNext(client)");
    const around = `
      const url = process.env.DATABASE_URL;
      async function payNext(client) {
        await client.query("create table if not exists payments (at timestamptz default now())");
        const { rows } = await client.query("select count(*)::int as paid from payments");
        if (rows[0].paid === 3) { console.log("3 payments are committed"); process.exit(0); }
        await client.query("insert into payments default values");
      }`;
    // Plain JavaScript: it has no types to take away.
    writeFileSync(join(home, "main.js"), `${around}\n${snippet}`);
    const ran = spawnSync(process.execPath, ["main.js"], {
      cwd: home,
      env: { ...process.env, DATABASE_URL: postgres.url() },
      encoding: "utf8",
      timeout: 60_000,
    });
    expect(ran, ran.stderr).toMatchObject({ status: 0, stdout: "3 payments are committed\n" });
  });

  it.each([
    { module: "Node16", moduleResolution: "Node16" },
    { module: "NodeNext", moduleResolution: "NodeNext" },
    { module: "ESNext", moduleResolution: "Bundler" },
  ])("has types for every subpath, resolved by $moduleResolution", (resolution) => {
    const { exports } = JSON.parse(readFileSync("package.json", "utf8")) as { exports: Record<string, unknown> };
    const entries = Object.keys(exports).filter((key) => key !== "./package.json");
    expect(entries.length).toBeGreaterThan(7);
    // An entry whose types are not found is an error; one that is `any` gives true in the second line, which is one too.
    const text = entries.map((entry, at) => {
      const name = `tenure${entry.slice(1)}`;
      return `import * as e${at} from ${JSON.stringify(name)};\nexport const a${at}: 0 extends 1 & typeof e${at} ? true : false = false;`;
    });
    writeFileSync(join(home, "every.ts"), text.join("\n"));
    const compilerOptions = {
      ...resolution,
      strict: true,
      noEmit: true,
      target: "ES2024",
      lib: ["ESNext"],
      typeRoots: [resolve("node_modules/@types")],
      types: ["node"],
    };
    writeFileSync(join(home, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["every.ts"] }));
    const { stdout } = spawnSync(resolve("node_modules/.bin/tsc"), ["-p", "."], { cwd: home, encoding: "utf8" });
    expect(stdout).toBe("");
  });
});

describe.skipIf(!hasRegistry)("tenure-server", () => {
  const terminals: ServerProcess[] = [];
  let home: string;
  let env: Record<string, string>;

  beforeAll(async () => {
    home = installed("servers", servers);
    const [peer, api] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
    // The README's own ports may be in use here.
    env = {
      PATH: `${join(home, "node_modules/.bin")}:${path}`,
      HOME: home,
      TENURE_PEER_LISTEN: peer,
      TENURE_API_LISTEN: api,
      TENURE_URL: `http://${api}`,
    };
  }, 180_000);
  afterAll(() => Promise.all(terminals.map((terminal) => terminal.end("SIGKILL"))));

  /** One block of the README; its last line goes on until it is ended. */
  function terminal(text: string): void {
    const script = `set -eu\n${text.replace(/^(tenure (?:server|agent) start )/m, "exec $1")}`;
    const folder = join(home, `terminal-${terminals.length}`);
    mkdirSync(folder);
    terminals.push(
      new ServerProcess({ command: "sh", args: ["-c", script], directory: folder, env, lastSignal: "SIGKILL" }),
    );
  }

  it("does what its README says, in three terminals", async () => {
    const [server = "", agent = "", third = "", ...more] = blocks("packages/tenure-server/README.md", "sh");
    expect(more).toEqual([]);
    const tenure = (...args: string[]) =>
      spawnSync(TENURE, args, { env, cwd: home, encoding: "utf8", timeout: 60_000 });
    terminal(server);
    await waitFor("a leader", () => tenure("cluster", "status").status === 0);
    terminal(agent);
    const ran = spawnSync("sh", ["-euc", third], { env, cwd: home, encoding: "utf8", timeout: 60_000 });
    expect(ran, `${ran.stderr}\n${terminals.map(({ log }) => log).join("\n")}`).toMatchObject({ status: 0 });
    expect(ran.stdout).toMatch(/^hello$/m);
    expect(ran.stdout).toContain("completed");
    for (const one of terminals.toReversed()) {
      await one.end("SIGTERM");
      expect(one.exitCode, one.log).toBe(0);
    }
  });

  it("is the command of a project that gets the library too, which npm links then", () => {
    execFileSync("npm", ["install", library.tarball, "--omit=peer", ...NPM_FLAGS], {
      cwd: home,
      env: { ...process.env, PATH: path },
    });
    const linked = join(home, "node_modules/.bin/tenure");
    expect(readlinkSync(linked)).toBe("../tenure/dist/cli/library.js");
    const asked = spawnSync(linked, ["server", "start", "--config", "none.json"], { env, encoding: "utf8" });
    expect(asked).toMatchObject({ status: 78, stderr: expect.stringContaining("none.json can't be read") as string });
  });

  it("has `tenure dev`, with its processes", () => {
    const { status, stdout, stderr } = spawnSync(TENURE, ["dev", "--for", "12s", "--json"], {
      env,
      cwd: home,
      encoding: "utf8",
      timeout: 110_000,
    });
    expect(status, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ lost: 0 });
  });
});
