// The packages as their users get them: built, packed, unpacked into a project of theirs, imported by plain Node and checked
// by their compiler. What ships is what their entries reach, and nothing else.

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
import { delimiter, dirname, join, posix, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { importsOf } from "../scripts/directions.ts";
import { packed, type Packed, type PackageName, unpack } from "./packages.ts";

/** What each package needs is written in its `engines`, and nowhere else but where a test compares. */
const [LIBRARY_NODE, SERVERS_NODE] = ["package.json", "packages/tenure-server/package.json"].map((file) => {
  const { engines } = JSON.parse(readFileSync(file, "utf8")) as { engines: { node: string } };
  return engines.node.replace(">=", "");
}) as [string, string];

let project: string;
let library: Packed;
let servers: Packed;

beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), "tenure-package-"));
  const repository = plantedCopy(join(project, "repository"));
  library = packed("tenure", project, repository);
  servers = packed("tenure-server", project, repository);
  const modules = join(project, "node_modules");
  unpack(library, join(modules, "tenure"));
  mkdirSync(join(modules, "@types"));
  symlinkSync(resolve("node_modules/@types/node"), join(modules, "@types/node"));
  symlinkSync(resolve("node_modules/undici-types"), join(modules, "undici-types"));
  symlinkSync(resolve("node_modules/pg"), join(modules, "pg"));
  writeFileSync(join(project, "package.json"), '{"type":"module"}');
}, 300_000);

/** The repository with rooms, documents and a built file that nothing names. */
function plantedCopy(to: string): string {
  const left = new Set([".git", "node_modules", "dist", "bench", "test", "tenure"]);
  const isTaken = (path: string): boolean => !left.has(path.split("/").at(-1)!) && !path.endsWith(".test.ts");
  cpSync(".", to, { recursive: true, filter: isTaken });
  symlinkSync(resolve("node_modules"), join(to, "node_modules"));
  for (const path of ["src/planted/room.ts", "src/cli/planted/command.ts", "src/core/planted.ts", "docs/planted.md"]) {
    mkdirSync(dirname(join(to, path)), { recursive: true });
    writeFileSync(join(to, path), "export const planted = 1;\n");
  }
  for (const name of ["tenure", "tenure-server"]) {
    mkdirSync(join(dirname(to), `${name}-source/dist`), { recursive: true });
    writeFileSync(join(dirname(to), `${name}-source/dist/planted.js`), "");
  }
  return to;
}

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
        const { status, stderr } = spawnSync(old!.path, [commandOf(home), command], { encoding: "utf8" });
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
    ["README.md", [LIBRARY_NODE, SERVERS_NODE]],
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

describe("what ships is named", () => {
  it.each(["tenure", "tenure-server"] as const)("%s has the files that its entries reach, and no other", (name) => {
    const { files } = name === "tenure" ? library : servers;
    const code = reached(name).flatMap((source) => {
      const built = source.replace(/^src/, "dist").replace(/\.ts$/, "");
      return [source, ...[".js", ".js.map", ".d.ts", ".d.ts.map"].map((extension) => built + extension)];
    });
    expect(code.length).toBeGreaterThan(1_000);
    const own = ["LICENSE", "README.md", "package.json", ...code];
    const others = /^(?:docs|examples|deploy|dist\/web)\//;
    expect(files.filter((path) => !others.test(path))).toEqual(own.toSorted());
    expect(files.filter((path) => /planted|\.test\.ts|node_modules/.test(path))).toEqual([]);
    expect(files.includes("dist/web/index.html")).toBe(name === "tenure-server");
  });

  it("has the servers, and the simulator, where they belong", () => {
    const rooms = ["engine", "core/raft", "controller", "api", "node", "drivers/sqlite", "cli/server", "cli/dev"];
    for (const room of rooms) {
      const code = (path: string): boolean => path.startsWith(`dist/${room}/`) && !path.includes("/help.");
      expect(library.files.filter(code)).toEqual([]);
      expect(servers.files.filter(code).length, room).toBeGreaterThan(0);
    }
    for (const { files } of [library, servers])
      expect(files.filter((path) => /^dist\/(?:cli\/)?sim\//.test(path))).toEqual([]);
  });

  it.each(["tenure", "tenure-server"] as const)("%s has the documents that it names, and no other", (name) => {
    const { files } = name === "tenure" ? library : servers;
    const home = name === "tenure" ? join(project, "node_modules/tenure") : serverHome();
    const names = namedBy(home, files);
    for (const named of names)
      expect(
        files.some((path) => path === named || path.startsWith(`${named}/`)),
        named,
      ).toBe(true);
    const others = files.filter((path) => /^(?:docs|examples|deploy)\//.test(path));
    expect(others.filter((path) => !names.some((named) => path === named || path.startsWith(`${named}/`)))).toEqual([]);
    expect(names).toContain(name === "tenure" ? "docs/reference/permissions.md" : "docs/runbooks/cluster-restore.md");
  });

  it.each(["tenure", "tenure-server"] as const)("%s has a source for each map", (name) => {
    const { files } = name === "tenure" ? library : servers;
    const home = name === "tenure" ? join(project, "node_modules/tenure") : serverHome();
    const missing = files.filter((path) => {
      if (!path.endsWith(".map")) return false;
      const { sources } = JSON.parse(readFileSync(join(home, path), "utf8")) as { sources: string[] };
      return sources.length !== 1 || !files.includes(posix.join(posix.dirname(path), sources[0]!));
    });
    expect(missing).toEqual([]);
  });

  it("publishes nothing of the repository's manifest but what users need", () => {
    const text = readFileSync(join(project, "node_modules/tenure/package.json"), "utf8");
    expect(text).not.toMatch(/tenure-source|devDependencies|scripts|private/);
    expect(JSON.parse(readFileSync("package.json", "utf8"))).toMatchObject({ private: true, files: [] });
  });
});

it("has the library's commands, and says where the others are", () => {
  const main = commandOf(join(project, "node_modules/tenure"));
  const tenure = (...args: string[]) => spawnSync(process.execPath, [main, ...args], { encoding: "utf8" });
  expect(tenure("--help").stdout).toMatch(/^ {2}tenure run [^]*^ {2}tenure dev /m);
  expect(tenure("clutser")).toMatchObject({ status: 64, stderr: expect.stringContaining("cluster") as string });
  for (const command of ["run", "scope", "doctor", "schema", "completion"])
    expect(tenure(command, "--help"), command).toMatchObject({ status: 0, stderr: "" });
  // It completes the commands of both packages.
  expect(tenure("completion", "bash").stdout).toContain('"cluster snapshot") COMPREPLY=($(compgen -W "save verify"');
  for (const command of ["server", "dev"])
    expect(tenure(command, "start")).toMatchObject({
      status: 69,
      stderr: `tenure: \`tenure ${command}\` is in the package tenure-server: npm install --global tenure-server\n`,
    });
});

it("the server's package has its dependencies in the versions that are tested here, and its command runs", () => {
  const { devDependencies, version } = JSON.parse(readFileSync("package.json", "utf8")) as Manifest;
  const server = JSON.parse(readFileSync("packages/tenure-server/package.json", "utf8")) as Manifest;
  expect(server.version).toBe(version);
  for (const [name, wanted] of Object.entries(server.dependencies)) expect(devDependencies[name], name).toBe(wanted);
  const home = serverHome();
  for (const name of Object.keys(server.dependencies)) {
    mkdirSync(dirname(join(home, "node_modules", name)), { recursive: true });
    symlinkSync(resolve("node_modules", name), join(home, "node_modules", name));
  }
  const asked = spawnSync(process.execPath, [commandOf(home), "server", "start", "--config", "none.json"], {
    cwd: home,
    encoding: "utf8",
  });
  expect(asked).toMatchObject({ status: 78, stderr: expect.stringContaining("none.json can't be read") as string });
});

it("in a project with both packages, `tenure` is the servers' command, whichever of the two is linked", () => {
  const modules = join(project, "node_modules");
  symlinkSync(serverHome(), join(modules, "tenure-server"));
  for (const name of ["tenure", "tenure-server"]) {
    const main = commandOf(join(modules, name));
    const asked = spawnSync(process.execPath, [main, "server", "start", "--config", "none.json"], { encoding: "utf8" });
    expect(asked).toMatchObject({ status: 78, stderr: expect.stringContaining("none.json can't be read") as string });
  }
});

/** As it was built: what of it is packed is compared above, and to unpack 5,700 files takes its time. */
function serverHome(): string {
  return join(project, "tenure-server-source");
}

/** The file that npm links as `tenure`. */
function commandOf(home: string): string {
  const { bin } = JSON.parse(readFileSync(join(home, "package.json"), "utf8")) as { bin: { tenure: string } };
  return join(home, bin.tenure);
}

/** The sources that a package's entries lead to: by imports of every kind, and by the paths of threads and processes. */
function reached(name: PackageName): string[] {
  const manifest = name === "tenure" ? "package.json" : `packages/${name}/package.json`;
  const { bin, exports } = JSON.parse(readFileSync(manifest, "utf8")) as {
    bin: { tenure: string };
    exports: Record<string, { default?: string }>;
  };
  const entries = [bin.tenure, ...Object.values(exports).flatMap((one) => one.default ?? [])];
  const found = new Set<string>();
  const visit = (path: string): void => {
    if (found.has(path) || !existsSync(path)) return;
    found.add(path);
    const text = readFileSync(path, "utf8");
    const started = [...text.matchAll(/new URL\([`"](\.\.?\/[\w/-]+)(?:\.ts|\$\{\w+\}|\$\{import\.meta)/g)].map(
      ([, to]) => `${to}.ts`,
    );
    for (const to of [...importsOf({ path, text }, []).map(({ specifier }) => specifier), ...started])
      if (to?.startsWith(".") === true) visit(posix.join(posix.dirname(path), to));
  };
  for (const entry of entries) visit(entry.replace(/^(?:\.\/)?dist(.*)\.js$/, "src$1.ts"));
  return [...found];
}

/** The documents that a package's README, code or files for systemd and the like name, and the examples that its documents name. */
function namedBy(home: string, files: readonly string[]): string[] {
  const named = files
    .filter((path) => path === "README.md" || /\.js$|^deploy\/|^docs\//.test(path))
    .flatMap((path) => {
      const text = readFileSync(join(home, path), "utf8").replaceAll("../", "");
      const paths = text.match(/(?<![\w./-])(?:docs|examples|deploy)\/[\w./-]*/g) ?? [];
      const isAll = !path.startsWith("docs/");
      return paths.filter((one) => isAll || (home !== serverHome() && one.startsWith("examples/")));
    });
  return [...new Set(named.map((path) => path.replace(/[./]+$/, "")))].filter((path) => existsSync(path));
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
}

function run(tool: string, args: readonly string[], cwd: string): string {
  try {
    return execFileSync(resolve("node_modules/.bin", tool), args, { cwd, encoding: "utf8", stdio: "pipe" });
  } catch (error) {
    return String((error as { stdout?: unknown }).stdout);
  }
}
