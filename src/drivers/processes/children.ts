// The children of a supervisor as real processes, each in a session of its own, so that a terminal's Ctrl-C reaches only the
// supervisor, which says how they end. A channel connects them: when one of the two dies, the other sees it close.

import { type ChildProcess, spawn } from "node:child_process";
import type { ChildEvents, ChildPart, Children } from "../../ports/children.ts";
import { killFamily } from "./family.ts";

/** All that comes of an agent has this in its environment. */
export const AGENT_COOKIE = "TENURE_AGENT_COOKIE";
/** Uninterruptible sleep outlives SIGKILL; whoever waits asks again. */
const KILL_MS_MAX = 2_000;
/** As a shell says it. */
const EXIT_NOT_STARTED = 126;

export interface ChildCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

/** `node`: the same for every supervisor of this node, and for no other node. */
export function systemChildren(node: string, commandOf: (part: ChildPart) => ChildCommand): Children {
  const cookie = { name: AGENT_COOKIE, value: node };
  let agent: ChildProcess | null = null;
  return {
    start: (part, events) => {
      const { command, args, env } = commandOf(part);
      const mark = part === "agent" ? { [cookie.name]: cookie.value } : {};
      const startedAtNs = process.hrtime.bigint();
      const child = spawn(command, args, {
        stdio: ["ignore", "inherit", "inherit", "ipc"],
        detached: true,
        env: { ...env, ...mark },
      });
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
      return killFamily({ cookie, roots: known, groups: known, withinMs: KILL_MS_MAX });
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
