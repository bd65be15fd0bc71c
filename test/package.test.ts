// The package as its users get it: built, packed, unpacked into a project of theirs, imported by plain Node and checked
// by their compiler. Nothing of the consensus core or the simulator travels with the library.

import { execFileSync, spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

/** What each package needs is written in its `engines`, and nowhere else but where a test compares. */
const [LIBRARY_NODE, SERVERS_NODE] = ["package.json", "packages/tenure-server/package.json"].map((file) => {
  const { engines } = JSON.parse(readFileSync(file, "utf8")) as { engines: { node: string } };
  return engines.node.replace(">=", "");
}) as [string, string];

let project: string;

beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), "tenure-package-"));
  const source = join(project, "source");
  mkdirSync(source);
  for (const file of ["package.json", "README.md", "LICENSE", "docs"])
    cpSync(file, join(source, file), { recursive: true });
  // Types are checked by `npm run check`, and are three fifths of the time.
  run("tsc", ["-p", "tsconfig.build.json", "--noCheck", "--outDir", join(source, "dist")], ".");
  execFileSync("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", project], { cwd: source });
  const [packed] = readdirSync(project).filter((name) => name.endsWith(".tgz"));
  const modules = join(project, "node_modules");
  mkdirSync(join(modules, "tenure"), { recursive: true });
  execFileSync("tar", ["-xzf", join(project, packed!), "-C", join(modules, "tenure"), "--strip-components=1"]);
  mkdirSync(join(modules, "@types"));
  symlinkSync(resolve("node_modules/@types/node"), join(modules, "@types/node"));
  symlinkSync(resolve("node_modules/undici-types"), join(modules, "undici-types"));
  symlinkSync(resolve("node_modules/pg"), join(modules, "pg"));
  writeFileSync(join(project, "package.json"), '{"type":"module"}');
});

afterAll(() => rmSync(project, { recursive: true }));

it("is imported by plain Node, by every subpath, and does its work", () => {
  const text = `
    import { createElector, NotLeaderError } from "tenure";
    import { postgres } from "tenure/postgres";
    import { fencedTransaction as inKysely } from "tenure/kysely";
    import { fencedTransaction as inDrizzle } from "tenure/drizzle";
    import { fencedTransaction as inPostgresJs } from "tenure/postgres-js";
    import { etcd } from "tenure/etcd";
    import { servers } from "tenure/servers";
    import { createClient } from "tenure/client";
    import { createAgent, JobError } from "tenure/agent";
    import { prometheusText } from "tenure/prometheus";
    import { testBackend } from "tenure/testing";
    const elector = createElector({ scope: "s", backend: testBackend() });
    const epoch = await elector.lead((term) => term.check());
    const { kind } = postgres("postgres://127.0.0.1:1/none");
    try { elector.gate.requireLeader(); } catch (error) { if (!NotLeaderError.is(error)) throw error; }
    console.log(epoch, kind, etcd("http://127.0.0.1:1").kind, servers(["http://127.0.0.1:1"]).kind, prometheusText([elector]).includes("tenure_is_leader"));
    const client = createClient({ urls: "http://127.0.0.1:1", timeoutMs: 50 });
    const code = await client.submit({ kind: "a" }).catch((error) => error.code);
    const agent = createAgent({ client, name: "a", handlers: { a: () => { throw new JobError("no"); } } });
    await agent.stop();
    console.log(code, await agent.ended);
    for (const fenced of [inKysely, inDrizzle, inPostgresJs]) console.log(await fenced(null, {}).catch((error) => error.code));
    await elector.close();`;
  writeFileSync(join(project, "main.js"), text);
  expect(execFileSync(process.execPath, ["main.js"], { cwd: project, encoding: "utf8" })).toBe(
    "1 postgres etcd servers true\nBACKEND_UNAVAILABLE null\nTX_MISUSED\nTX_MISUSED\nTX_MISUSED\n",
  );
});

/** A Node of this machine that is older than the package needs. */
const old = oldNode();
if (old === undefined)
  console.log(`no Node older than ${LIBRARY_NODE} is on the PATH: what it is answered is not tested`);

describe.skipIf(old === undefined)("an older Node", () => {
  const { exports } = JSON.parse(readFileSync("package.json", "utf8")) as { exports: Record<string, unknown> };
  const subpaths = Object.keys(exports).filter((path) => path !== "./package.json");

  it.each(subpaths)("is answered by %s which one is needed, when it is imported", (subpath) => {
    const text = `import(${JSON.stringify(subpath.replace(".", "tenure"))}).then(() => console.log("imported"), (error) => console.log(error.code, error.message))`;
    const { stdout, stderr } = spawnSync(old!.path, ["--input-type=module", "-e", text], {
      cwd: project,
      encoding: "utf8",
    });
    expect(`${stdout}${stderr}`).toMatch(
      `RUNTIME_UNSUPPORTED Tenure needs Node ≥ ${LIBRARY_NODE}, and this is Node ${old!.version}. Install a newer one`,
    );
  });

  it.each(["run", "doctor", "--help", "server"])(
    "is answered by `tenure %s` in one line, with exit code 78: what its package needs",
    (command) => {
      for (const [home, least] of [
        [join(project, "node_modules/tenure"), LIBRARY_NODE],
        [serverHome(), SERVERS_NODE],
      ] as const) {
        const main = join(home, "dist/cli/main.js");
        const { status, stderr } = spawnSync(old!.path, [main, command], { encoding: "utf8" });
        expect(stderr).toBe(
          `tenure: Tenure needs Node ≥ ${least}, and this is Node ${old!.version}. Install a newer one; nothing was done.\n`,
        );
        expect(status).toBe(78);
      }
    },
  );
});

describe("the documents say which Node is needed", () => {
  const named = (file: string): string[] =>
    [...readFileSync(file, "utf8").matchAll(/Node(?:\.js)? (?:≥|>=) ?([\d.]+\d|\d)/g)].map(([, version]) => version!);
  const documents = ["README.md", "CONTRIBUTING.md", "packages/tenure-server/README.md"].concat(
    readdirSync("docs", { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".md"))
      .map((path) => join("docs", path)),
  );

  it.each([
    // The first is for who has the repository, which brings its own Node.
    ["README.md", ["20", LIBRARY_NODE, SERVERS_NODE]],
    ["docs/server.md", [SERVERS_NODE, LIBRARY_NODE]],
    ["docs/jobs.md", [LIBRARY_NODE]],
    ["docs/errors.md", [LIBRARY_NODE, SERVERS_NODE]],
    ["packages/tenure-server/README.md", [SERVERS_NODE]],
  ])("%s: %j", (file, versions) => {
    expect(named(file)).toEqual(versions);
  });

  it("and no other document does", () => {
    const others = documents.filter((file) => !file.startsWith("docs/decisions") && named(file).length > 0);
    expect(others.toSorted()).toEqual([
      "README.md",
      "docs/errors.md",
      "docs/jobs.md",
      "docs/server.md",
      "packages/tenure-server/README.md",
    ]);
  });
});

it("satisfies a strict compiler that knows nothing of pg", () => {
  const text = `
    import { createElector } from "tenure";
    import { postgres } from "tenure/postgres";
    import { createClient, type JobView } from "tenure/client";
    import { type Agent, createAgent } from "tenure/agent";
    export async function build(urls: string): Promise<JobView> {
      const client = createClient({ urls });
      type Kinds = { build: { payload: { repository: string }; result: { bytes: number } } };
      const agent: Agent = createAgent<Kinds>({
        client,
        name: "a",
        handlers: { build: async ({ payload }, { signal }) => ({ bytes: signal.aborted ? 0 : payload.repository.length }) },
      });
      await agent.start();
      return await client.wait(await client.submit({ kind: "build", payload: { repository: "r" } }));
    }
    export async function main(url: string): Promise<number> {
      await using elector = createElector({ scope: "s", backend: postgres(url) });
      return await elector.lead(async (term) => {
        await term.tx((client) => client.query("select 1"));
        return term.epoch;
      });
    }`;
  writeFileSync(join(project, "main.ts"), text);
  const options = {
    strict: true,
    noEmit: true,
    module: "NodeNext",
    target: "ES2024",
    lib: ["ESNext"],
    types: ["node"],
  };
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files: ["main.ts"] }));
  rmSync(join(project, "node_modules/pg"));
  expect(run("tsc", ["-p", "."], project)).toBe("");
});

it("has the command, and nothing of the servers, and says where they are", () => {
  const dist = join(project, "node_modules/tenure/dist");
  const help = execFileSync(process.execPath, [join(dist, "cli/main.js"), "--help"], { encoding: "utf8" });
  expect(help).toMatch(/tenure run/);
  const rooms = [
    "sim",
    "engine",
    "core/raft",
    "core/wal",
    "core/scopes",
    "core/state",
    "core/txn",
    "logs",
    "controller",
    "api",
    "core/events/event.js",
    "contract/routes.js",
  ];
  for (const path of [...rooms, "drivers/wire", "cli/sim", "cli/dev/command.js", "cli/server/command.js", "node"]) {
    expect(existsSync(join(dist, path)), path).toBe(false);
  }
  // It completes the commands of both packages.
  const script = execFileSync(process.execPath, [join(dist, "cli/main.js"), "completion", "bash"], {
    encoding: "utf8",
  });
  expect(script).toContain('"cluster snapshot") COMPREPLY=($(compgen -W "save verify"');
  const asked = spawnSync(process.execPath, [join(dist, "cli/main.js"), "server", "start"], { encoding: "utf8" });
  expect(asked).toMatchObject({
    status: 69,
    stderr: expect.stringContaining("in the package tenure-server") as string,
  });
});

it("the server's package has its dependencies in the versions that are tested here, and its command runs", () => {
  const { devDependencies, scripts, version } = JSON.parse(readFileSync("package.json", "utf8")) as Manifest;
  const server = JSON.parse(readFileSync("packages/tenure-server/package.json", "utf8")) as Manifest;
  expect(server.version).toBe(version);
  for (const [name, wanted] of Object.entries(server.dependencies)) expect(devDependencies[name], name).toBe(wanted);

  const home = serverHome();
  execFileSync(process.execPath, ["scripts/copy-docs.mjs", home]);
  const [packed] = JSON.parse(
    execFileSync("npm", ["pack", "--dry-run", "--json"], { cwd: home, encoding: "utf8" }),
  ) as [{ files: { path: string }[] }];
  const files = packed.files.map(({ path }) => path);
  expect(files).toContain("dist/cli/server/command.js");
  expect(scripts["build:server"]).toContain("&& node scripts/copy-docs.mjs packages/tenure-server");
  expect(namedBy(home, files)).toContain("docs/runbooks/cluster-restore.md");
  expect(namedBy(home, files).filter((path) => !files.includes(path))).toEqual([]);
  expect(files.filter((path) => path.startsWith("dist/sim"))).toEqual([]);
  for (const name of Object.keys(server.dependencies)) {
    mkdirSync(dirname(join(home, "node_modules", name)), { recursive: true });
    symlinkSync(resolve("node_modules", name), join(home, "node_modules", name));
  }
  const asked = spawnSync(process.execPath, ["dist/cli/main.js", "server", "start", "--config", "none.json"], {
    cwd: home,
    encoding: "utf8",
  });
  expect(asked).toMatchObject({ status: 78, stderr: expect.stringContaining("none.json can't be read") as string });
});

it("has the documents that its messages name", () => {
  const home = join(project, "node_modules/tenure");
  const files = readdirSync(home, { recursive: true, encoding: "utf8" });
  expect(namedBy(home, files)).toContain("docs/reference/permissions.md");
  expect(namedBy(home, files).filter((path) => !files.includes(path))).toEqual([]);
});

/** The server's package, unpacked; its dependencies are put there by who needs them. */
function serverHome(): string {
  const home = join(project, "server");
  if (existsSync(home)) return home;
  mkdirSync(join(home, "node_modules"), { recursive: true });
  cpSync(join(project, "source/dist"), join(home, "dist"), { recursive: true });
  cpSync("packages/tenure-server/package.json", join(home, "package.json"));
  return home;
}

/** The documents that packed code names, in messages, help texts or comments. */
function namedBy(home: string, files: readonly string[]): string[] {
  const code = files.filter((path) => path.endsWith(".js"));
  const texts = code.map((path) => readFileSync(join(home, path), "utf8"));
  return [...new Set(texts.flatMap((text) => text.match(/\bdocs\/[\w/-]+\.md\b/g) ?? []))];
}

function oldNode(): { readonly path: string; readonly version: string } | undefined {
  for (const directory of (process.env["PATH"] ?? "").split(delimiter)) {
    const path = join(directory, "node");
    const version = spawnSync(path, ["-p", "process.versions.node"], { encoding: "utf8" }).stdout?.trim() ?? "";
    const [major = 0, minor = 0] = version.split(".").map(Number);
    const [leastMajor = 0, leastMinor = 0] = LIBRARY_NODE.split(".").map(Number);
    const isOld = major < leastMajor || (major === leastMajor && minor < leastMinor);
    if (version !== "" && isOld) return { path, version };
  }
  return undefined;
}

interface Manifest {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly scripts: Readonly<Record<string, string>>;
}

function run(tool: string, args: readonly string[], cwd: string): string {
  try {
    return execFileSync(resolve("node_modules/.bin", tool), args, { cwd, encoding: "utf8", stdio: "pipe" });
  } catch (error) {
    return String((error as { stdout?: unknown }).stdout);
  }
}
