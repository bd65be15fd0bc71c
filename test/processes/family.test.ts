// Whole families of real processes, which do what daemons do to get away: each is found and gone.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { familyMembers, killFamily } from "../../src/drivers/processes/index.ts";
import { waitFor } from "../servers/index.ts";
import { isAlive } from "./living.ts";

const NAME = "TENURE_TEST_COOKIE";

class TestFamily {
  readonly cookie = { name: NAME, value: randomUUID() };
  readonly folder = mkdtempSync(join(tmpdir(), "tenure-family-"));
  readonly root: ChildProcess;

  /** `$PIDS` is a folder for those who are to die: `echo > $PIDS/$$`. */
  constructor(script: string, options: { readonly withCookie?: boolean } = {}) {
    const cookie = options.withCookie === false ? {} : { [NAME]: this.cookie.value };
    this.root = spawn("sh", ["-c", script], {
      stdio: "ignore",
      detached: true,
      env: { ...process.env, PIDS: this.folder, STAY: STAY_SCRIPT, ...cookie },
    });
    onTestFinished(() => {
      for (const pid of [...this.pids(), this.root.pid!]) killed(pid);
      rmSync(this.folder, { recursive: true, force: true });
    });
  }

  pids(): number[] {
    return readdirSync(this.folder).map(Number);
  }

  async ready(count: number): Promise<this> {
    await waitFor(`${count} processes`, () => this.pids().length >= count);
    return this;
  }

  kill(named: { readonly roots?: readonly number[]; readonly groups?: readonly number[] } = {}) {
    return killFamily({ cookie: this.cookie, roots: [], groups: [], withinMs: 20_000, ...named });
  }

  living(): number[] {
    return this.pids().filter((pid) => isAlive(pid));
  }
}

function killed(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

/** Says its number and stays; `$STAY` is the same for a shell inside of a shell. */
const STAY_SCRIPT = "echo > $PIDS/$$; exec sleep 1000";
const STAY = 'sh -c "$STAY"';

describe.runIf(process.platform === "linux")("a family is gone", () => {
  it.each([
    ["a tree", `${STAY} & sh -c '${STAY} & wait' & wait`, 2],
    ["grandchildren in sessions of their own", `setsid sh -c '${STAY} & wait' & wait`, 1],
    ["a double fork, whose parents have ended", `(setsid sh -c '${STAY} & exit 0' &); exit 0`, 1],
    ["those that ignore SIGTERM", `sh -c 'trap "" TERM HUP INT; ${STAY}; exit' & wait`, 1],
    ["stopped ones", `sh -c 'echo > $PIDS/$$; kill -STOP $$; sleep 1000' & wait`, 1],
    ["one that poses as a keeper", `env -i TENURE_KEEPER=1 PIDS=$PIDS STAY="$STAY" setsid ${STAY} & wait`, 1],
    ["one that cleared its environment, with its parent", `env -i PIDS=$PIDS STAY="$STAY" setsid ${STAY} & wait`, 1],
    [
      "one that cleared its environment and lost its parent, but is in the session of another",
      `setsid sh -c 'env -i PIDS=$PIDS STAY="$STAY" ${STAY} & ${STAY} & exit 0' & wait`,
      2,
    ],
  ])("%s", async (_name, script, count) => {
    const family = await new TestFamily(script).ready(count);
    expect(family.living()).toHaveLength(count);
    const end = await family.kill();
    expect(family.living()).toEqual([]);
    expect(end).toMatchObject({ survivors: 0 });
    expect(end.killed).toBeGreaterThanOrEqual(count);
    expect(end.goneAtNs).toBeLessThanOrEqual(process.hrtime.bigint());
  });

  it("by its root and its group too, where nobody has the cookie", async () => {
    const tree = await new TestFamily(`${STAY} & setsid ${STAY} & wait`, { withCookie: false }).ready(2);
    expect((await tree.kill({ roots: [tree.root.pid!] })).survivors).toBe(0);
    expect(tree.living()).toEqual([]);
    const orphans = await new TestFamily(`${STAY} & exit 0`, { withCookie: false }).ready(1);
    await waitFor("the leader to end", () => !isAlive(orphans.root.pid!));
    expect(await orphans.kill({ groups: [orphans.root.pid!] })).toMatchObject({ survivors: 0, killed: 1 });
    expect(orphans.living()).toEqual([]);
  });

  it("also where each starts the next one and ends, in a session of its own", async () => {
    // Bounded: 400 of them at most.
    const relay = `i=$((\${I:-0}+1)); export I=$i; echo > $PIDS/$$; [ $i -lt 400 ] && setsid sh -c "$RELAY" & exit 0`;
    const family = await new TestFamily(
      `RELAY='${relay.replaceAll("'", `'"'"'`)}'; export RELAY; sh -c "$RELAY"`,
    ).ready(3);
    expect((await family.kill()).survivors).toBe(0);
    const before = family.pids().length;
    expect(family.living()).toEqual([]);
    expect(before).toBeLessThan(400);
    await new Promise((resolve) => void setTimeout(resolve, 100));
    expect(family.pids(), "nobody starts another").toHaveLength(before);
  });

  it("and nobody else: no namesake of the cookie, no stranger in the shell that it was started from", async () => {
    const family = new TestFamily(`TENURE_TEST_COOKIE_2=$${NAME} ${NAME}=$${NAME}x ${STAY} & OTHER=1 ${STAY} & wait`, {
      withCookie: false,
    });
    await family.ready(2);
    const own = await new TestFamily(`exec ${STAY}`).ready(1);
    // A shell of another session runs one of ours among its own.
    const shell = new TestFamily(`${STAY} & ${NAME}=${own.cookie.value} ${STAY} & wait`, { withCookie: false });
    await shell.ready(2);
    expect(familyMembers({ cookie: own.cookie, roots: [], groups: [] })).toHaveLength(2);
    expect(await own.kill()).toMatchObject({ killed: 2, survivors: 0 });
    expect(family.living()).toHaveLength(2);
    expect(shell.living()).toHaveLength(1);
    for (const one of [family, shell]) await one.kill({ groups: [one.root.pid!] });
  });

  it("within a few milliseconds, and at once where there is nobody", async () => {
    const nobody = { cookie: { name: NAME, value: randomUUID() }, roots: [], groups: [] };
    const startMs = performance.now();
    for (let round = 0; round < 20; round++) familyMembers(nobody);
    const lookMs = (performance.now() - startMs) / 20;
    const family = await new TestFamily(`for i in 1 2 3 4 5 6 7 8; do ${STAY} & done; wait`).ready(8);
    const killMs = performance.now();
    await family.kill();
    console.log(`a look: ${lookMs.toFixed(1)} ms; killing 9: ${(performance.now() - killMs).toFixed(1)} ms`);
    expect(await killFamily({ ...nobody, withinMs: 0 })).toMatchObject({ survivors: 0, killed: 0 });
  });

  it("has those that outlived an earlier kill, and nobody who has got the number of one", async () => {
    const orphan = await new TestFamily(`exec ${STAY}`, { withCookie: false }).ready(1);
    const nobody = { cookie: { name: NAME, value: randomUUID() }, roots: [], groups: [], withinMs: 20_000 };
    const [line] = familyMembers({ ...nobody, roots: [orphan.root.pid!] })!;
    const another = { ...line!, start: line!.start - 1 };
    expect(await killFamily({ ...nobody, left: [another] })).toMatchObject({ survivors: 0, killed: 0 });
    expect(orphan.living()).toHaveLength(1);
    expect(await killFamily({ ...nobody, left: [line!] })).toMatchObject({ survivors: 0, killed: 1, left: [] });
    expect(orphan.living()).toHaveLength(0);
  });

  it("is not said to be gone by one that can't open a file any more, which kills what it knows by number", async () => {
    const family = await new TestFamily(`${STAY} & wait`).ready(1);
    const named = await new TestFamily(`exec ${STAY}`, { withCookie: false }).ready(1);
    const script = `
      import { closeSync, openSync } from "node:fs";
      import { killFamily } from ${JSON.stringify(new URL("../../src/drivers/processes/index.ts", import.meta.url).href)};
      const cookie = ${JSON.stringify(family.cookie)};
      const taken = [];
      try { for (;;) taken.push(openSync("/dev/null", "r")); } catch {}
      const blind = await killFamily({ cookie, roots: [], groups: [${named.root.pid}], withinMs: 200 });
      for (const file of taken) closeSync(file);
      const seeing = await killFamily({ cookie, roots: [], groups: [], withinMs: 20_000 });
      console.log(JSON.stringify([blind.survivors, seeing.survivors, seeing.killed]));
    `;
    const args = ["-c", 'ulimit -n 64; exec "$0" --no-warnings --input-type=module -e "$1"', process.execPath, script];
    const { stdout, stderr } = spawnSync("sh", args, { encoding: "utf8", timeout: 60_000 });
    expect(stdout.trim(), stderr).toBe("[1,0,2]");
    expect(family.living()).toEqual([]);
    expect(named.living()).toEqual([]);
  });
});
