// The keeper: a shell next to an agent that kills the agent's jobs when the agent can't: after kill -9, and when its loop does not
// turn (SIGSTOP, a call that does not return, an endless computation) for so long that its leases end while its jobs run on (trap 49).
//
// The first shell reads a pipe that only the agent writes, a line for each: `+GROUP` and `-GROUP` for a job's group, `.` for a
// turn of the agent's loop. The second shell only wakes the first (SIGUSR1), several times in a lease. All state is the first shell's: a
// subshell has its own copy of every variable, and would never learn of a group (trap 76).
//
//   reading ──the pipe ends (the agent has ended, however)────────────▶ sweep, end
//      └────woken PATIENCE times without a turn of the agent's loop───▶ sweep, go on reading
//
// A sweep kills the groups, everything whose environment has the agent's cookie, the members of their sessions and the children
// of all these, until nobody is found. Of a silent agent its own children too: one may have been started and not been named yet.
// Out of reach is a process that cleared its environment, left its session and lost its parents.
//
// An agent whose supervisor is gone ends by itself; one that has not after a while is killed. The keeper's own environment has no
// cookie: it would find itself. Plain POSIX sh, for dash, bash and busybox.
//
// Where no process can be started any more (a job has used them all up) a shell ends at its next command. The first kills the
// groups while it ends, which starts nobody; where the second ends so, the first goes with it and the agent starts another.

import { type ChildProcess, spawn } from "node:child_process";
import { assert } from "../../core/kit/assert.ts";
import { KEEPER } from "./family.ts";
import {
  KEEPER_CLOSE_MS,
  KEEPER_ORPHAN_MS,
  KEEPER_RESTART_MS_MAX,
  KEEPER_RESTART_MS_MIN,
  KEEPER_TICKS_MIN,
  KEEPER_TICK_MS_MAX,
} from "./limits.ts";

/** For its tests too. */
export const KEEPER_SCRIPT = `
trap '' TERM INT HUP QUIT
cookie=$1 agent=$2 patience=$3 tick=$4 parent=$5 orphan_patience=$6
groups=' ' all=' ' root= silent=0 orphaned=0 sweeping= woken=

# Sets state, above (the parent), group, session, threads and start of a process. Starts nobody. A name may hold anything, also
# ") " and ends of lines, and is too short for as many fields: they follow the last ") " of the first line that has them all.
about() {
  while read -r row; do
    case $row in *") "*) ;; *) continue ;; esac
    set -f
    set -- \${row##*) }
    set +f
    [ "$#" -ge 20 ] && break
  done 2>/dev/null < "/proc/$1/stat"
  [ "$#" -ge 20 ] || return
  case $2$3$4 in *[!0-9]*) return 1 ;; esac
  state=$1 above=$2 group=$3 session=$4 threads=\${18} start=\${20}
}

add() {
  case $all in *" $1 "*) return ;; esac
  [ "$1" -gt 1 ] && [ "$1" != "$agent" ] && [ "$1" != "$$" ] || return
  all="$all$1 "
  # Stopped first: who is stopped starts nobody.
  kill -s STOP "$1" 2>/dev/null
}

marked() {
  for file in $(grep "-lF$nul" -e "$cookie" /proc/[0-9]*/environ 2>/dev/null); do
    file=\${file#/proc/}
    add "\${file%/environ}"
  done
}

# Starts nobody. The dead that nobody has reaped are no kin: they would never go.
kin() {
  for file in /proc/[0-9]*; do
    about "\${file#/proc/}" || continue
    case $state in Z | X) [ "$threads" -gt 1 ] || continue ;; esac
    case " $root$all" in *" $above "*) add "\${file#/proc/}" ;; esac
    case "$groups$all" in *" $group "* | *" $session "*) add "\${file#/proc/}" ;; esac
  done
}

kill_groups() {
  for one in $groups; do kill -s KILL -- "-$one" 2>/dev/null; done
}

sweep() {
  sweeping=1 rounds=0
  for one in $groups; do kill -s STOP -- "-$one" 2>/dev/null; done
  while :; do
    all=' ' before=
    while [ "$all" != "$before" ]; do
      before=$all
      marked
      kin
    done
    kill_groups
    for one in $all; do kill -s KILL -- "-$one" 2>/dev/null; done
    for one in $all; do kill -s KILL "$one" 2>/dev/null; done
    [ "$all" = ' ' ] && break
    rounds=$((rounds + 1))
    [ "$rounds" -gt 100 ] && break
    [ "$rounds" -gt 20 ] && sleep 1
  done
  sweeping=
}

wake() {
  woken=1
  [ -n "$sweeping" ] && return
  if [ "$parent" != 0 ] && about "$agent"; then
    if [ "$above" = "$parent" ]; then orphaned=0; else orphaned=$((orphaned + 1)); fi
    # Stopped by a supervisor that then was killed itself, nobody would ever continue it; nor one that hangs.
    [ "$orphaned" -ge "$orphan_patience" ] && kill -s KILL "$agent"
    [ "$orphaned" -ge 1 ] && [ "$silent" -ge "$patience" ] && kill -s KILL "$agent"
  fi
  if [ "$silent" -ge "$patience" ]; then
    root="$agent "
    sweep
    root=
  fi
  silent=$((silent + 1))
}

# The number of the first shell may be another's once it has ended.
is_first() {
  [ -z "$first" ] || { about $$ && [ "$start" = "$first" ]; }
}

wake_often() {
  first=
  about $$ && first=$start
  trap 'is_first && kill -s KILL $$' EXIT
  while :; do
    sleep "$tick" 2>/dev/null || sleep 1
    is_first && kill -s USR1 $$ 2>/dev/null || break
  done
  trap - EXIT
}

# The variables of an environment end in NUL. One busybox sees nothing after the first without -z, another does not know -z and sees all.
nul=z
grep -qFz -e ab > /dev/null 2>&1 << 'END' || nul=
ab
END
# What wakes it ends a read, also in the middle of a line. dash leaves what it read in the variable; busybox, and bash as sh, drop
# it, and can read one character, of which there is no half. A shell that can is asked for no more. Starts nobody.
one='-n 1' said=
read -r -n 1 said 2>/dev/null << 'END'
ab
END
[ "$said" = a ] || one=
trap kill_groups EXIT
trap wake USR1
wake_often < /dev/null &
waker=$!
# What wakes it may run between any two commands here: no variable of its own is used.
begun=
while :; do
  said=
  if read -r $one said; then
    begun=$begun$said
    # Of a line that is read by characters, the end is the empty one.
    [ -n "$one" ] && [ -n "$said" ] && continue
    said=$begun begun=
    case $said in
      .) silent=0 ;;
      +*) groups="$groups\${said#+} " ;;
      -*) left=\${groups%% \${said#-} *} right=\${groups#* \${said#-} }
          [ "$left" = "$groups" ] || groups="$left $right" ;;
    esac
  elif [ -n "$woken" ]; then
    woken= begun=$begun$said
  else
    break
  fi
done
trap '' USR1
sweep
kill -s KILL "$waker" 2>/dev/null
trap - EXIT
`;

/**
 * Of a lease: the agent's loop has not turned for so long when the last sweep begins. Beats come three times in a lease, so
 * two thirds are left at least when it stops, and the sweep takes a moment.
 */
const LEASE_SHARE = 0.5;
const TURNS_PER_TICK = 2.5;

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
  readonly #tickMs: number;
  readonly #turning: NodeJS.Timeout;
  #restartMs = KEEPER_RESTART_MS_MIN;
  #isClosed = false;

  constructor(options: KeeperOptions) {
    // It is in a pattern of grep and in one line.
    assert(/^[A-Za-z0-9_-]+$/.test(options.cookie.value), "a cookie is letters and digits");
    this.#options = options;
    this.#tickMs = Math.min(KEEPER_TICK_MS_MAX, (options.leaseMs * LEASE_SHARE) / KEEPER_TICKS_MIN);
    this.#turning = setInterval(() => this.#turned(), this.#tickMs / TURNS_PER_TICK);
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
    const late = setTimeout(resolve, KEEPER_CLOSE_MS);
    child.stdin?.end();
    await promise;
    clearTimeout(late);
  }

  #start(): void {
    const { cookie, leaseMs } = this.#options;
    const tickMs = this.#tickMs;
    const parent = this.#options.hasSupervisor === true ? process.ppid : 0;
    const patience = Math.floor((leaseMs * LEASE_SHARE) / tickMs) - 1;
    const about = [process.pid, patience, (tickMs / 1_000).toFixed(3), parent, Math.ceil(KEEPER_ORPHAN_MS / tickMs)];
    const child = spawn(
      "sh",
      ["-c", KEEPER_SCRIPT, "tenure-keeper", `${cookie.name}=${cookie.value}`, ...about.map(String)],
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
    this.#restartMs = Math.min(KEEPER_RESTART_MS_MAX, this.#restartMs * 2);
  }

  /** Not where others wait already: the first shell itself may be stopped. */
  #turned(): void {
    if (this.#child?.stdin?.writableLength === 0) this.#tell(".\n");
  }

  #tell(line: string): void {
    if (this.#child?.stdin?.writable === true) this.#child.stdin.write(line);
  }
}
