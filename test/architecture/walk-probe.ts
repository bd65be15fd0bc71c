// Loaded into a server's process (`node --import`): writes down, for each POST /v1/jobs, what runs from the moment in which Node's
// HTTP server has the request to the moment in which its bytes are appended to Raft's log. One line of JSON for each request:
//
//   ran      the functions of each file of src/ that were called (V8's precise coverage)
//   stack    the files that were on the stack at the append, and on the stacks that led to it: a promise's continuation is followed
//            to where it was made

import { createHook, executionAsyncId } from "node:async_hooks";
import { subscribe } from "node:diagnostics_channel";
import { appendFileSync } from "node:fs";
import { type Profiler, Session } from "node:inspector";
import { RaftLog } from "../../src/core/raft/log.ts";

const SRC = new URL("../../src/", import.meta.url).href;
const OUT = new URL(import.meta.url).searchParams.get("out")!;
const session = new Session();
session.connect();

/** In the same thread: it has answered when `post` returns. */
function coverage(): readonly Profiler.ScriptCoverage[] {
  let found: readonly Profiler.ScriptCoverage[] = [];
  session.post("Profiler.takePreciseCoverage", (error, { result }) => {
    if (error !== null) throw error;
    found = result;
  });
  return found;
}

function filesOnStack(): string[] {
  const lines = new Error("stack").stack?.split("\n") ?? [];
  return lines.flatMap((line) => (line.includes("at async") ? [] : (line.split(SRC)[1]?.split(":")[0] ?? [])));
}

const made = new Map<number, { readonly by: number; readonly files: readonly string[] }>();
const hook = createHook({ init: (id) => void made.set(id, { by: executionAsyncId(), files: filesOnStack() }) });
let isWalking = false;

function arrived(): string {
  const stack = new Set(["core/raft/log.ts", ...filesOnStack()]);
  for (let one = made.get(executionAsyncId()); one !== undefined; one = made.get(one.by)) {
    for (const file of one.files) stack.add(file);
  }
  const ran: Record<string, string[]> = {};
  for (const { url, functions } of coverage()) {
    const called = functions.filter(({ ranges }) => ranges[0]!.count > 0).map(({ functionName }) => functionName);
    if (url.startsWith(SRC) && called.length > 0) ran[url.slice(SRC.length)] = called;
  }
  return JSON.stringify({ ran, stack: [...stack] });
}

Error.stackTraceLimit = 100;
session.post("Profiler.enable");
session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
subscribe("http.server.request.start", (message) => {
  const { request } = message as { readonly request: { readonly method: string; readonly url: string } };
  if (request.method !== "POST" || request.url !== "/v1/jobs") return;
  made.clear();
  isWalking = true;
  hook.enable();
  coverage();
});
// oxlint-disable-next-line typescript/unbound-method -- called with its own `this`
const append = RaftLog.prototype.append;
RaftLog.prototype.append = function (entries) {
  append.call(this, entries);
  if (!isWalking) return;
  isWalking = false;
  hook.disable();
  appendFileSync(OUT, `${arrived()}\n`);
};
