// The children of a supervisor as real processes, each in a session of its own, so that a terminal's Ctrl-C reaches only the
// supervisor, which says how they end. A channel connects them: when one of the two dies, the other sees it close.

import { type ChildProcess, spawn } from "node:child_process";
import { statSync } from "node:fs";
import type { ChildEvents, ChildPart, Children } from "../../ports/processes/children.ts";
import { type FamilyEnd, killFamily } from "./family.ts";
import { CONTROLLER_KILL_MS_MAX, KILL_MS_MAX } from "./limits.ts";

/** All that comes of an agent has this in its environment; a controller has the other. */
export const AGENT_COOKIE = "TENURE_AGENT_COOKIE";
const CONTROLLER_COOKIE = "TENURE_CONTROLLER_COOKIE";
/** As a shell says it. */
const EXIT_NOT_STARTED = 126;

export interface ChildCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

/**
 * The same for every supervisor of this directory, by whatever name it is called, and for no other: not for one of that name in a
 * container, whose processes are seen from outside.
 */
export function nodeCookie(dataDir: string): string {
  const stat = statSync(dataDir, { throwIfNoEntry: false });
  return stat === undefined ? dataDir : `${stat.dev}-${stat.ino}`;
}

/** Of a supervisor before: a controller that has not seen its end. */
export async function killControllers(node: string): Promise<void> {
  await killFamily({
    cookie: { name: CONTROLLER_COOKIE, value: node },
    roots: [],
    groups: [],
    withinMs: CONTROLLER_KILL_MS_MAX,
  });
}

/** `node`: the same for every supervisor of this node, and for no other node. */
export function systemChildren(node: string, commandOf: (part: ChildPart) => ChildCommand): Children {
  const cookie = { name: AGENT_COOKIE, value: node };
  let agent: ChildProcess | null = null;
  let left: FamilyEnd["left"] = [];
  return {
    start: (part, events) => {
      const { command, args, env } = commandOf(part);
      const mark = { [part === "agent" ? AGENT_COOKIE : CONTROLLER_COOKIE]: node };
      const startedAtNs = process.hrtime.bigint();
      let child: ChildProcess;
      try {
        child = spawn(command, args, {
          stdio: ["ignore", "inherit", "inherit", "ipc"],
          detached: true,
          env: { ...env, ...mark },
        });
      } catch {
        // No memory, say. Of some refusals Node tells by an event, of others by throwing.
        setImmediate(() => events.exited({ code: EXIT_NOT_STARTED, signal: null }));
        return { pid: null, startedAtNs, send: () => undefined, signal: () => undefined };
      }
      watch(child, events);
      if (part === "agent") agent = child;
      return {
        pid: child.pid ?? null,
        startedAtNs,
        send: (message) => {
          // One that is dying takes nothing; that it died is told by itself.
          if (child.connected) child.send(message, () => undefined);
        },
        signal: (signal) => void child.kill(signal),
      };
    },
    endAgents: async () => {
      const pids = agent?.pid === undefined ? [] : [agent.pid];
      const isReaped = agent === null || agent.exitCode !== null || agent.signalCode !== null;
      // Once it was reaped its number may be another's; whoever is left of it has the cookie.
      const known = isReaped ? [] : pids;
      const end = await killFamily({ cookie, roots: known, groups: known, left, withinMs: KILL_MS_MAX });
      ({ left } = end);
      return end;
    },
  };
}

function watch(child: ChildProcess, events: ChildEvents): void {
  let isOver = false;
  const over = (code: number | null, signal: string | null): void => {
    if (isOver) return;
    isOver = true;
    events.exited({ code, signal });
  };
  child.on("message", (message) => events.told(message));
  child.once("error", () => {
    if (child.pid === undefined) over(EXIT_NOT_STARTED, null);
  });
  child.once("exit", over);
}
