// The keeper: a shell beside an agent that kills the agent's jobs when the agent can't: after kill -9, and when it stands still
// (SIGSTOP, or a call that does not return) for so long that its leases are over while its jobs run on (trap 49).
//
// It is a process of its own in a session of its own, and reads a pipe that only the agent writes: `+GROUP` and `-GROUP`, a
// line for each. The pipe ends with the agent, however that ends. Then the groups that were named are killed, and everything
// whose environment has the agent's cookie, until nobody is found. Plain POSIX sh, for dash and busybox; a process that cleared
// its environment and left its group as well is not found by it.
//
// A second shell looks once a second whether the agent's loop turns: each turn waits, which the kernel counts (voluntary switches
// in /proc), and a timer here sees to it that there is one. That needs no word from the agent. An agent whose supervisor is gone
// ends by itself; one that has not after a while is killed. Its own environment has no cookie: it would find itself.
//
// Where no process can be started any more (a job has used them all up) a shell ends at its next command. Then the groups die by
// what it does while it ends, which starts nobody; and where the second shell ends so, the first goes with it and the agent starts another.

import { type ChildProcess, spawn } from "node:child_process";
import { assert } from "../../core/kit/assert.ts";
import { KEEPER } from "./family.ts";

const SCRIPT = `
trap '' TERM INT HUP QUIT
cookie=$1 agent=$2 patience=$3 parent=$4 groups=' '

found() {
  for file in $(grep -lF -e "$cookie" /proc/[0-9]*/environ 2>/dev/null); do
    pid=\${file#/proc/}
    pid=\${pid%/environ}
    [ "$pid" = "$agent" ] || echo "$pid"
  done
}

kill_groups() {
  for one in $groups; do kill -s KILL -- "-$one" 2>/dev/null; done
}

sweep() {
  rounds=0
  for one in $groups; do kill -s STOP -- "-$one" 2>/dev/null; done
  while :; do
    # Stopped first: who is stopped starts nobody.
    all=
    while :; do
      now=$(found)
      [ "$now" = "$all" ] && break
      all=$now
      for one in $groups $all; do kill -s STOP -- "-$one" 2>/dev/null; done
      for one in $all; do kill -STOP "$one" 2>/dev/null; done
    done
    kill_groups
    for one in $all; do kill -s KILL -- "-$one" 2>/dev/null; done
    for one in $all; do kill -KILL "$one" 2>/dev/null; done
    [ -z "$all" ] && return
    rounds=$((rounds + 1))
    [ "$rounds" -gt 100 ] && return
    [ "$rounds" -gt 20 ] && sleep 1
  done
}

# Sets state, above (its parent) and turns (how often it has waited; empty where the kernel does not say).
look() {
  turns=
  read -r line 2>/dev/null < "/proc/$agent/stat" || return
  line=\${line##*) }
  state=\${line%% *}
  above=\${line#* }
  above=\${above%% *}
  while read -r name value; do
    case $name in voluntary_ctxt_switches:) turns=$value ;; esac
  done 2>/dev/null < "/proc/$agent/status"
}

watch() {
  still=0 orphaned=0 turns= before=
  trap '[ -d "/proc/$agent" ] && kill -KILL $$' EXIT
  while [ -d "/proc/$agent" ]; do
    sleep 1
    look || break
    # One that runs may be busy, and never wait.
    if [ "$state" = R ] || [ "$turns" != "$before" ]; then
      still=0
    elif [ -n "$turns" ] || [ "$state" = T ] || [ "$state" = t ]; then
      still=$((still + 1))
    fi
    before=$turns
    if [ "$parent" = 0 ] || [ "$above" = "$parent" ]; then orphaned=0; else orphaned=$((orphaned + 1)); fi
    # Stopped by a supervisor that then was killed itself, nobody would ever continue it; nor one that hangs.
    [ "$orphaned" -ge 10 ] && kill -KILL "$agent"
    [ "$orphaned" -ge 1 ] && [ "$still" -ge 2 ] && kill -KILL "$agent"
    [ "$still" -ge "$patience" ] && sweep
  done
  trap - EXIT
}

trap kill_groups EXIT
[ -r "/proc/$agent/stat" ] && watch < /dev/null &
while read -r line; do
  case $line in
    +*) groups="$groups\${line#+} " ;;
    -*) before=\${groups%% \${line#-} *} after=\${groups#* \${line#-} }
        [ "$before" = "$groups" ] || groups="$before $after" ;;
  esac
done
sweep
trap - EXIT
`;

/** Of the time that a lease has left at least when the agent stands still: beats come three times in it. */
const LEASE_SHARE = 0.6;
const PATIENCE_S_MIN = 1;
/** Its loop turns at least so often; the second shell looks once a second. */
const TURN_EVERY_MS = 400;
const RESTART_MS_MIN = 200;
const RESTART_MS_MAX = 10_000;
/** It goes on by itself where somebody outlives SIGKILL. */
const CLOSE_MS = 3_000;

export interface KeeperOptions {
  readonly cookie: { readonly name: string; readonly value: string };
  readonly leaseMs: number;
  /** The parent of this process is its supervisor. */
  readonly hasSupervisor?: boolean | undefined;
  /** It ended although nobody asked for it, or can't be started; another is started. */
  readonly onTrouble: (what: string) => void;
}

export class Keeper {
  readonly #options: KeeperOptions;
  readonly #groups = new Set<number>();
  #child: ChildProcess | null = null;
  #timer: NodeJS.Timeout | undefined;
  readonly #turning: NodeJS.Timeout;
  #restartMs = RESTART_MS_MIN;
  #isClosed = false;

  constructor(options: KeeperOptions) {
    // It stands in a pattern of grep and in one line.
    assert(/^[A-Za-z0-9_-]+$/.test(options.cookie.value), "a cookie is letters and digits");
    this.#options = options;
    this.#turning = setInterval(() => undefined, TURN_EVERY_MS);
    this.#turning.unref();
    this.#start();
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  group(group: number, isAlive: boolean): void {
    if (isAlive) this.#groups.add(group);
    else this.#groups.delete(group);
    this.#tell(`${isAlive ? "+" : "-"}${group}\n`);
  }

  /** Everything that is left of the agent's jobs is killed now; resolves when the keeper has ended, or it takes long. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearInterval(this.#turning);
    const child = this.#child;
    if (child === null) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    child.once("exit", () => resolve());
    const late = setTimeout(resolve, CLOSE_MS);
    child.stdin?.end();
    await promise;
    clearTimeout(late);
  }

  #start(): void {
    const { cookie, leaseMs } = this.#options;
    const parent = this.#options.hasSupervisor === true ? process.ppid : 0;
    const patience = Math.max(PATIENCE_S_MIN, Math.floor((leaseMs * LEASE_SHARE) / 1_000));
    const child = spawn(
      "sh",
      ["-c", SCRIPT, "tenure-keeper", `${cookie.name}=${cookie.value}`, `${process.pid}`, `${patience}`, `${parent}`],
      {
        stdio: ["pipe", "ignore", "ignore"],
        env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin", [KEEPER]: "1" },
        cwd: "/",
        detached: true,
      },
    );
    this.#child = child;
    child.unref();
    child.stdin.on("error", () => undefined);
    child.once("error", (error) => this.#ended(child, `the keeper can't be started: ${error.message}`));
    child.once("exit", (code, signal) => this.#ended(child, `the keeper ended (${signal ?? `exit code ${code}`})`));
    for (const group of this.#groups) this.#tell(`+${group}\n`);
  }

  #ended(child: ChildProcess, what: string): void {
    if (this.#child !== child) return;
    this.#child = null;
    if (this.#isClosed) return;
    this.#options.onTrouble(`${what}; another is started`);
    this.#timer = setTimeout(() => this.#start(), this.#restartMs);
    this.#timer.unref();
    this.#restartMs = Math.min(RESTART_MS_MAX, this.#restartMs * 2);
  }

  #tell(line: string): void {
    if (this.#child?.stdin?.writable === true) this.#child.stdin.write(line);
  }
}
