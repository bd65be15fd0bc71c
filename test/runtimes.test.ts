// The library in other runtimes than the one that it is tested in: the oldest Node of `engines`, the Node of the servers, Bun and
// Deno, each from an npm package. One that can't be installed here is named, and skipped.

import { execFile, execFileSync, spawnSync } from "node:child_process";
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packed, unpack } from "./packages.ts";
import { removeDirectory, temporaryDirectory } from "./servers/directories.ts";

const { engines, exports } = JSON.parse(readFileSync("package.json", "utf8")) as {
  engines: { node: string };
  exports: Readonly<Record<string, unknown>>;
};
const NODE = `node-${process.platform}-${process.arch}`;

/** The package, and where in it the program is: those of Bun and Deno depend on one package for each platform. */
const RUNTIMES = {
  "Node 22": [`npm:${NODE}@${engines.node.replace(">=", "")}.0`, "node_modules/runtime/bin/node"],
  "Node 24": [`npm:${NODE}@24.21.0`, "node_modules/runtime/bin/node"],
  Bun: ["npm:bun@1.4.4", "node_modules/@oven/*/bin/bun"],
  Deno: ["npm:deno@2.9.6", "node_modules/@deno/*/deno"],
} as const;

const USE = `
  const elector = createElector({ scope: "s", backend: testBackend() });
  const epoch = await elector.lead((term) => term.check());
  await elector.close();
  const client = createClient({ urls: process.argv[2] });
  const { leaderId } = await client.leader();
  const agent = createAgent({ client, name: "a", handlers: { a: () => null } });
  await agent.stop();
  console.log(epoch, leaderId, await agent.ended);
  process.exit();`;
const NAMES = [
  ["{ createElector }", "tenure"],
  ["{ createClient }", "tenure/client"],
  ["{ createAgent }", "tenure/agent"],
  ["{ testBackend }", "tenure/testing"],
] as const;

let directory: string;
let server: Server;
let url: string;

beforeAll(async () => {
  directory = await temporaryDirectory("runtimes", undefined);
  unpack(packed("tenure", directory), join(directory, "node_modules/tenure"));
  const subpaths = Object.keys(exports).filter((path) => path !== "./package.json");
  const every = subpaths.map((path) => `"${path.replace(".", "tenure")}"`);
  const imports = [
    ...every.map((from) => `import ${from};`),
    ...NAMES.map(([names, from]) => `import ${names} from "${from}";`),
  ].join("\n");
  writeFileSync(join(directory, "main.mjs"), `import process from "node:process";\n${imports}\n${USE}`);
  const requires = [
    ...every.map((from) => `require(${from});`),
    ...NAMES.map(([names, from]) => `const ${names} = require("${from}");`),
  ].join("\n");
  writeFileSync(join(directory, "main.cjs"), `${requires}\nvoid (async () => {${USE}})();`);
  // Deno imports what package.json names, and nothing else of node_modules.
  writeFileSync(join(directory, "package.json"), '{ "dependencies": { "tenure": "*" } }');
  server = createServer((_request, response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ node_id: "n1", leader_id: "n1", leader_url: url, leader_address: null, term: 1 }));
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}, 300_000);

afterAll(async () => {
  server?.close();
  await removeDirectory(directory);
});

/** Its program, where the registry has one that runs here. */
function installed(name: keyof typeof RUNTIMES): string | undefined {
  const [from, program] = RUNTIMES[name];
  const home = join(directory, name);
  mkdirSync(home);
  writeFileSync(join(home, "package.json"), '{ "private": true }');
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefer-offline"];
  spawnSync("npm", ["install", `runtime@${from}`, ...flags], { cwd: home, timeout: 240_000 });
  const found = globSync(program, { cwd: home }).map((path) => join(home, path));
  return found.find((path) => spawnSync(path, ["--version"]).status === 0);
}

describe("the library, imported and required by every subpath, elects, asks a server and makes an agent", () => {
  const runs = async (program: string, ...flags: string[]): Promise<void> => {
    for (const main of ["main.mjs", "main.cjs"]) {
      const { stdout } = await promisify(execFile)(program, [...flags, main, url], { cwd: directory });
      expect(stdout, main).toBe("1 n1 null\n");
    }
  };

  it("under the Node that runs this test", () => runs(process.execPath));

  const names = Object.keys(RUNTIMES) as (keyof typeof RUNTIMES)[];
  it.for(names)("under %s", { timeout: 300_000 }, async (name, { skip }) => {
    const program = installed(name);
    if (program === undefined) {
      skip(`${name} can't be installed here (${RUNTIMES[name][0]})`);
      return;
    }
    console.log(`${name}: ${execFileSync(program, ["--version"], { encoding: "utf8" }).split("\n")[0]}`);
    await runs(program, ...(name === "Deno" ? ["run", "--allow-all", "--node-modules-dir=manual"] : []));
  });
});
