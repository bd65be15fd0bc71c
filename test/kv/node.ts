// A node of the test store as a process of its own: `node test/kv/node.ts '<NodeOptions as JSON>'`, started with an IPC
// channel. This file only plants what is to be planted into the sources, before any of them is loaded; node-process.ts is
// the node.

import { plantAll } from "../servers/planted.ts";
import type { NodeOptions } from "./messages.ts";

const options = JSON.parse(process.argv[2] ?? "null") as NodeOptions | null;
if (options === null) throw new Error("say how to start: one argument, NodeOptions as JSON");
const edits = options.edits ?? [];
if (edits.length > 0) plantAll(edits);

const { runNode } = await import("./node-process.ts");
await runNode(options);
