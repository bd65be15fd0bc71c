// A machine with systemd as its first process, for tests: Debian in a directory, in namespaces of its own for mounts, processes, cgroups
// and names; the network is this machine's. Needs root, debootstrap, and a kernel that lets it make control groups.

import { type ChildProcess, spawn, spawnSync, type SpawnSyncReturns } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { waitFor } from "../servers/index.ts";
import { makeBase, passedOn, PATH, processOne, whyNoImage } from "./test-image.ts";

/** Of the machine, not of npm. */
const [UNSHARE, NSENTER] = ["unshare", "nsenter"];

/** systemd moves its root when it makes a unit's sandbox, so the root must be one of mounts and not of a chroot; devices must be nodes. */
const BOOT = `
set -eu
mount --make-rprivate /
mount --bind "$0" "$0"
cd "$0"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs tmpfs run
mount -t tmpfs -o mode=755 tmpfs dev
for device in null:3 zero:5 full:7 random:8 urandom:9; do mknod -m 666 "dev/\${device%:*}" c 1 "\${device#*:}"; done
mknod -m 666 dev/tty c 5 0
mkdir dev/shm dev/pts run/lock
ln -s /proc/self/fd dev/fd
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs tmpfs dev/shm
mount -t tmpfs tmpfs sys/fs/cgroup
mount -t cgroup2 cgroup2 sys/fs/cgroup
pivot_root . mnt
exec env -i container=other PATH="${PATH}" sh -c 'umount -l /mnt && exec /lib/systemd/systemd --unit=multi-user.target --log-target=journal --show-status=false'
`;
const NAMESPACES = ["--mount", "--pid", "--fork", "--kill-child", "--cgroup", "--uts", "--ipc"];

/** Why none can be started here; undefined where one can. */
export function whyNoMachine(): string | undefined {
  const mounts = [...NAMESPACES, "sh", "-c", "mount --make-rprivate / && mount -t cgroup2 cgroup2 /mnt"];
  return (
    whyNoImage() ??
    (groupsRoot() !== "" && spawnSync(UNSHARE, mounts).status === 0 ? undefined : "control groups can't be mounted")
  );
}

export class Machine {
  readonly root: string;
  /** The root of the machine's control groups: with the one of this machine its systemd would rule over processes that are not its own. */
  readonly #group = join(groupsRoot(), `tenure-machine-${process.pid}`);
  #process: ChildProcess | undefined;

  constructor(directory: string) {
    this.root = join(directory, "machine");
  }

  async start(): Promise<void> {
    makeBase(this.root, ["systemd", "systemd-sysv"]);
    mkdirSync(this.#group);
    const enter = 'echo $$ > "$0/cgroup.procs" && exec "$@"';
    const boot = [UNSHARE, ...NAMESPACES, "sh", "-c", BOOT, this.root];
    this.#process = spawn("sh", ["-c", enter, this.#group, ...boot], { stdio: "ignore" });
    await waitFor("systemd", () => /running|degraded/.test(this.run("systemctl is-system-running").stdout));
  }

  /** A script of root's, in a folder. */
  run(script: string, folder = "/root"): SpawnSyncReturns<string> {
    const inside = [
      "-t",
      `${processOne(this.#process!)}`,
      "-m",
      "-p",
      "-u",
      "-i",
      "-C",
      "-r",
      `--wd=${join(this.root, folder)}`,
    ];
    return spawnSync(NSENTER, [...inside, "sh", "-euc", script], {
      env: { PATH, HOME: "/root", ...passedOn() },
      encoding: "utf8",
      timeout: 180_000,
    });
  }

  async end(): Promise<void> {
    const one = this.#process;
    if (one === undefined || one.exitCode !== null || one.signalCode !== null) return;
    const ended = new Promise((resolve) => one.once("exit", resolve));
    one.kill("SIGKILL");
    await ended;
    await waitFor("its last process to be gone", () => {
      try {
        removeGroups(this.#group);
        return true;
      } catch {
        return false;
      }
    });
  }
}

/** Deepest first: a group with groups, or processes, in it can't be removed. */
function removeGroups(root: string): void {
  const found = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isDirectory());
  const paths = found.map((entry) => join(entry.parentPath, entry.name)).toSorted((a, b) => b.length - a.length);
  for (const path of [...paths, root]) rmdirSync(path);
}

/** Where version 2 of control groups is mounted here. */
function groupsRoot(): string {
  const mounts = readFileSync("/proc/self/mounts", "utf8").split("\n");
  return mounts.map((line) => line.split(" ")).find(([, , type]) => type === "cgroup2")?.[1] ?? "";
}
