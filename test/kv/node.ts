// A node of the test store as a process of its own: `node test/kv/node.ts '<NodeOptions as JSON>'`, started with an IPC
// channel. This file only plants what is to be planted into the sources, before any of them is loaded; node-process.ts is
// the node.

import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { plant } from "../../src/sim/mutants/patch.ts";
import type { NodeOptions } from "./messages.ts";

const options = JSON.parse(process.argv[2] ?? "null") as NodeOptions | null;
if (options === null) throw new Error("say how to start: one argument, NodeOptions as JSON");
const edits = options.edits ?? [];
if (edits.length > 0) {
  registerHooks({
    load(url, context, nextLoad) {
      const here = edits.filter((edit) => url === new URL(`../../src/${edit.file}`, import.meta.url).href);
      if (here.length === 0) return nextLoad(url, context);
      return {
        format: "module-typescript",
        source: here.reduce(plant, readFileSync(new URL(url), "utf8")),
        shortCircuit: true,
      };
    },
  });
}

const { runNode } = await import("./node-process.ts");
await runNode(options);
