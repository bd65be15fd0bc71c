// What a user of the library ships: the root entry as one minified file. It needs nothing around it, does nothing
// when it is loaded, and is small.

import { gzipSync } from "node:zlib";
import { build } from "rolldown";
import { beforeAll, describe, expect, it } from "vitest";

const GZIP_BYTES_MAX = 12_000;

interface Bundle {
  readonly code: string;
  /** What it still imports, statically or not. */
  readonly imports: readonly string[];
  readonly gzipBytes: number;
}

async function bundle(entry: string, text?: string): Promise<Bundle> {
  const { output } = await build({
    input: entry,
    write: false,
    logLevel: "silent",
    platform: "neutral",
    // Whatever is not a file of ours is left as an import, so that it is seen here.
    external: (id) => !/^[./]|^virtual:/.test(id),
    plugins:
      text === undefined
        ? []
        : [
            {
              name: "virtual",
              resolveId: (id) => (id === entry ? id : null),
              load: (id) => (id === entry ? text : null),
            },
          ],
    output: { format: "esm", minify: true, codeSplitting: false },
  });
  const [chunk, ...others] = output;
  expect(others).toEqual([]);
  return {
    code: chunk.code,
    imports: [...chunk.imports, ...chunk.dynamicImports],
    gzipBytes: gzipSync(chunk.code, { level: 9 }).length,
  };
}

let root: Bundle;
beforeAll(async () => {
  root = await bundle("src/entry/index.ts");
});

describe("the root entry as one file", () => {
  it("imports nothing at all: no package, and nothing of Node", () => {
    expect(root.imports).toEqual([]);
    // Ways around an import declaration.
    expect(/\bimport\s*\(|\brequire\b|getBuiltinModule|process\s*\.\s*binding/.exec(root.code)?.[0]).toBeUndefined();
  });

  it(`is at most ${GZIP_BYTES_MAX} bytes, minified and compressed`, () => {
    console.log(`tenure: ${root.code.length} bytes minified, ${root.gzipBytes} bytes gzip`);
    expect(root.code.length, "the bundle is suspiciously small").toBeGreaterThan(5_000);
    expect(root.gzipBytes).toBeLessThanOrEqual(GZIP_BYTES_MAX);
  });

  it("reads no environment", () => {
    expect(/process\s*\.\s*env|Deno\s*\.\s*env|import\.meta/.exec(root.code)?.[0]).toBeUndefined();
  });

  it("starts nothing and changes nothing when it is loaded", async () => {
    const names = Reflect.ownKeys(globalThis).length;
    const active = process.getActiveResourcesInfo().length;
    const library = (await import(`data:text/javascript,${encodeURIComponent(root.code)}`)) as object;
    expect(Object.keys(library)).toEqual(expect.arrayContaining(["createElector", "TenureError"]));
    expect(Reflect.ownKeys(globalThis)).toHaveLength(names);
    expect(process.getActiveResourcesInfo().length).toBeLessThanOrEqual(active);
  });

  it("has no side effects: whoever imports it and uses nothing ships nothing", async () => {
    const entry = JSON.stringify(`${process.cwd()}/src/entry/index.ts`);
    const unused = await bundle(
      "virtual:unused",
      `import ${entry}; import * as all from ${entry}; export const one = 1;`,
    );
    expect(unused.code.replaceAll(/\s/g, "")).toMatch(/^(const|let|var)(\w+)=1;export\{\2asone\};?$/);
  });
});

describe("the client and the agent, each as one file", () => {
  // Each error code that the API may answer is in both: those of the coordinators took 150 bytes, those of transactions 120, client.coordinators 40.
  // client.values takes 980, and 65 that electors read streams and watch values with the same code; client.transaction 2,700, of which half is that an
  // outcome is never guessed. An agent brings only what it calls itself.
  it.each([
    ["client", "createClient", 19_800],
    ["agent", "createAgent", 15_200],
  ] as const)("tenure/%s imports nothing at all, starts nothing, and is small", async (entry, name, gzipBytesMax) => {
    const { code, imports, gzipBytes } = await bundle(`src/entry/${entry}.ts`);
    console.log(`tenure/${entry}: ${code.length} bytes minified, ${gzipBytes} bytes gzip`);
    expect(imports).toEqual([]);
    // A transaction requires epochs: a method, a field on the wire, and the field of its class.
    const own = code.replaceAll(/\brequire\(\w,\w,\w\)\{|\brequire:/g, "");
    // `globalThis.process` is asked for a version, and may be missing.
    expect(/\bimport\s*\(|\brequire\b|(?<!globalThis\.)\bprocess\b|\bBuffer\b/.exec(own)?.[0]).toBeUndefined();
    expect(gzipBytes).toBeLessThanOrEqual(gzipBytesMax);
    const active = process.getActiveResourcesInfo().length;
    expect(Object.keys((await import(`data:text/javascript,${encodeURIComponent(code)}`)) as object)).toContain(name);
    expect(process.getActiveResourcesInfo().length).toBeLessThanOrEqual(active);
  });
});

describe("the check itself", () => {
  it("sees imports of packages and of Node, also dynamic ones", async () => {
    const text =
      'import "pg"; import { readFileSync } from "node:fs"; export const f = () => [readFileSync, import("os")];';
    const { imports } = await bundle("virtual:imports", text);
    expect([...imports].sort()).toEqual(["node:fs", "os", "pg"]);
  });
});
