// Carries out the steps of deploy/docker/Dockerfile without Docker: a stage is a directory with Debian's base system and this Node in
// it, RUN is a shell in a chroot with namespaces of its own for mounts and processes, COPY is a copy. Needs root and debootstrap.

import { spawn, spawnSync, type ChildProcess, type SpawnSyncReturns } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, statSync, symlinkSync } from "node:fs";
import { dirname, isAbsolute, join, relative, resolve } from "node:path";

export interface Instruction {
  readonly name: string;
  readonly text: string;
}

/** Of the machine, not of npm. */
const [DEBOOTSTRAP, UNSHARE] = ["debootstrap", "unshare"];
/** The release in place of the one that the base image has; `libatomic1` is in there as well. */
const DEBIAN = "bookworm";
const BASE = /^node:(\d+)-slim$/;
/** `node` of the base image. */
const USER_ID = 1000;

/** In order; comments and the end of a continued line are gone. */
export function instructionsOf(text: string): Instruction[] {
  const lines = text.replaceAll(/^\s*#.*\n/gm, "").replaceAll(/\\\n\s*/g, "");
  return lines
    .split("\n")
    .map((line) => /^([A-Z]+)\s+(.*)$/.exec(line.trim()))
    .filter((found) => found !== null)
    .map(([, name = "", rest = ""]) => ({ name, text: rest }));
}

/** Whether a build leaves a path out of its context, by the patterns of a .dockerignore, as far as this one uses them. */
export function ignores(patterns: string): (path: string) => boolean {
  const lines = patterns.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("#"));
  const expressions = lines.map((line) => {
    const parts = line.replaceAll(".", "\\.").replaceAll("**/", "\u0000").replaceAll("*", "[^/]*");
    return new RegExp(`^${parts.replaceAll("\u0000", "(?:.*/)?")}(?:/|$)`);
  });
  return (path) => expressions.some((expression) => expression.test(path));
}

/** Why none can be built here; undefined where one can. */
export function whyNoImage(): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "not root on Linux";
  if (spawnSync(DEBOOTSTRAP, ["--version"]).status !== 0)
    return "debootstrap is not here (apt-get install debootstrap)";
  if (spawnSync(UNSHARE, ["--mount", "--pid", "--fork", "true"]).status !== 0) return "no namespaces may be made";
  if (spawnSync("npm", ["ping", "--loglevel=silent"], { timeout: 20_000 }).status !== 0) return "no package registry";
  return undefined;
}

interface Stage {
  readonly root: string;
  workdir: string;
  user: string;
  readonly env: Record<string, string>;
}

export interface Image {
  readonly root: string;
  readonly env: Readonly<Record<string, string>>;
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
  readonly healthcheck: readonly string[];
  /** A command in a container of this image: its user, no capabilities, a root that can't be written, an own /tmp. */
  readonly run: (command: readonly string[], env?: Readonly<Record<string, string>>) => SpawnSyncReturns<string>;
  readonly start: (command: readonly string[], env?: Readonly<Record<string, string>>) => ChildProcess;
}

/** As node:26-slim has it: Debian, Node and npm in /usr/local, the user `node`; and packages of Debian, where more are wanted. */
export function makeBase(root: string, packages: readonly string[] = []): void {
  const include = `--include=${["ca-certificates", "libatomic1", ...packages].join(",")}`;
  must(spawnSync(DEBOOTSTRAP, ["--variant=minbase", include, DEBIAN, root], { encoding: "utf8" }));
  cpSync(realpathSync(process.execPath), join(root, "usr/local/bin/node"));
  const npm = spawnSync("sh", ["-c", "command -v npm"], { encoding: "utf8" }).stdout.trim();
  cpSync(resolve(dirname(realpathSync(npm)), ".."), join(root, "usr/local/lib/node_modules/npm"), { recursive: true });
  symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", join(root, "usr/local/bin/npm"));
  for (const file of ["/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt"])
    if (existsSync(file)) cpSync(realpathSync(file), join(root, file));
  const settings = spawnSync("npm", ["config", "get", "userconfig"], { encoding: "utf8" }).stdout.trim();
  if (existsSync(settings)) cpSync(settings, join(root, "root/.npmrc"));
  must(inside({ root, workdir: "/", user: "root", env: {} }, `useradd --uid ${USER_ID} --create-home node`));
}

export class ImageBuild {
  readonly #directory: string;
  readonly #context: string;
  readonly #stages = new Map<string, Stage>();
  #config: Record<"entrypoint" | "command" | "healthcheck", readonly string[]> = {
    entrypoint: [],
    command: [],
    healthcheck: [],
  };
  #stage: Stage | undefined;

  constructor(directory: string, context: string) {
    this.#directory = directory;
    this.#context = resolve(context);
  }

  build(dockerfile: string): Image {
    const skips = ignores(readFileSync(`${dockerfile}.dockerignore`, "utf8"));
    for (const instruction of instructionsOf(readFileSync(dockerfile, "utf8"))) this.#step(instruction, skips);
    const { root, env, user } = this.#now();
    if (user !== "node") throw new Error(`the image runs as ${user}`);
    const set = (more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv => ({
      PATH: PATH,
      HOME: "/tmp",
      ...env,
      ...more,
    });
    return {
      root,
      env,
      ...this.#config,
      run: (command, more) =>
        spawnSync(UNSHARE, container(root, command), { env: set(more), encoding: "utf8", timeout: 120_000 }),
      start: (command, more) =>
        spawn(UNSHARE, container(root, command), { env: set(more), stdio: ["ignore", "pipe", "pipe"] }),
    };
  }

  #now(): Stage {
    if (this.#stage === undefined) throw new Error("the Dockerfile does not begin with FROM");
    return this.#stage;
  }

  #step({ name, text }: Instruction, skips: (path: string) => boolean): void {
    switch (name) {
      case "FROM":
        return this.#from(text);
      case "WORKDIR":
        mkdirSync(join(this.#now().root, text), { recursive: true });
        this.#now().workdir = text;
        return;
      case "ENV": {
        const [key = "", value = ""] = text.split("=");
        this.#now().env[key] = value;
        return;
      }
      case "USER":
        this.#now().user = text;
        return;
      case "COPY":
        return this.#copy(text.split(/\s+/), skips);
      case "RUN":
        return this.#run(text);
      case "HEALTHCHECK":
        this.#config.healthcheck = JSON.parse(text.slice(text.indexOf("["))) as string[];
        return;
      case "ENTRYPOINT":
        this.#config.entrypoint = JSON.parse(text) as string[];
        return;
      case "CMD":
        this.#config.command = JSON.parse(text) as string[];
        return;
      case "VOLUME":
      case "EXPOSE":
      case "STOPSIGNAL":
        return;
      default:
        throw new Error(`an instruction that this test does not know: ${name}`);
    }
  }

  #from(text: string): void {
    const [image = "", , name = `${this.#stages.size}`] = text.split(/\s+/);
    const [, major] = BASE.exec(image) ?? [];
    if (major !== process.versions.node.split(".")[0]) throw new Error(`${image} has another Node than this one`);
    const root = join(this.#directory, name);
    const base = join(this.#directory, "base");
    if (!existsSync(base)) makeBase(base);
    cpSync(base, root, { recursive: true, verbatimSymlinks: true });
    this.#stage = { root, workdir: "/", user: "root", env: {} };
    this.#stages.set(name, this.#stage);
  }

  #copy(words: readonly string[], skips: (path: string) => boolean): void {
    const { root, workdir } = this.#now();
    const from = words.find((word) => word.startsWith("--from="))?.slice("--from=".length);
    const [source = "", target = ""] = words.filter((word) => !word.startsWith("--"));
    const to = join(root, isAbsolute(target) ? target : join(workdir, target));
    if (from === undefined) {
      const isWanted = (path: string): boolean => !skips(relative(this.#context, path));
      cpSync(join(this.#context, source), to, { recursive: true, filter: isWanted });
      return;
    }
    const folder = join(this.#stages.get(from)?.root ?? "", dirname(source));
    const pattern = new RegExp(`^${source.split("/").at(-1)!.replaceAll(".", "\\.").replaceAll("*", ".*")}$`);
    const found = readdirSync(folder).filter((name) => pattern.test(name));
    if (found.length === 0) throw new Error(`COPY found no ${source}`);
    for (const name of found) cpSync(join(folder, name), join(to, name));
  }

  #run(text: string): void {
    must(inside(this.#now(), text));
  }
}

export const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** Namespaces of its own: what is mounted there is gone with its last process, and its first process is process 1. */
const NAMESPACES = ["--mount", "--pid", "--fork", "--kill-child"];
const MOUNTS = `mount --bind "$0" "$0" && mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev"`;
/** Of the caller, for those who build: how to reach the registries. */
const PASSED_ON = /^(?:https?_proxy|no_proxy|node_extra_ca_certs)$/i;

export function passedOn(): Record<string, string> {
  const set = Object.entries(process.env).filter(([name]) => PASSED_ON.test(name));
  return Object.fromEntries(set) as Record<string, string>;
}

/** A step of a build. */
function inside({ root, workdir, env }: Stage, command: string): SpawnSyncReturns<string> {
  const script = `${MOUNTS} && exec chroot "$0" /bin/sh -c "$1"`;
  return spawnSync(UNSHARE, [...NAMESPACES, "sh", "-c", script, root, `cd ${workdir} && { ${command}\n}`], {
    env: { PATH, HOME: "/root", DEBIAN_FRONTEND: "noninteractive", ...passedOn(), ...env },
    encoding: "utf8",
    timeout: 600_000,
  });
}

/** As compose.yaml and the pods have it: read-only, no capabilities, no new privileges; the volume and /tmp can be written. */
function container(root: string, command: readonly string[]): string[] {
  const writable = `mount --bind "$0/var/lib/tenure" "$0/var/lib/tenure" && mount -t tmpfs tmpfs "$0/tmp"`;
  const privileges = `--reuid=${USER_ID} --regid=${USER_ID} --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs`;
  const script = `${MOUNTS} && ${writable} && mount -o remount,bind,ro "$0" && exec chroot "$0" setpriv ${privileges} "$@"`;
  return [...NAMESPACES, "sh", "-c", script, root, ...command];
}

function must({ status, stdout, stderr, error }: SpawnSyncReturns<string>): void {
  if (status !== 0) throw new Error(`exit ${status} ${error?.message ?? ""}\n${stdout}\n${stderr}`);
}

/** The first process of a container that `start` gave. */
export function processOne(started: ChildProcess): number {
  const children = readFileSync(`/proc/${started.pid}/task/${started.pid}/children`, "utf8").trim();
  return Number(children.split(" ")[0]);
}

export function ownerAndMode(path: string): { readonly uid: number; readonly mode: string } {
  const { uid, mode } = statSync(path);
  return { uid, mode: (mode & 0o777).toString(8) };
}
