// A small file system of a test's own, to be filled up. Only root may mount one: where that can't be done, the test is skipped
// and says so.

import { spawnSync } from "node:child_process";
import { chownSync, closeSync, mkdirSync, mkdtempSync, openSync, rmdirSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Account, findProgram } from "./server-process.ts";

export class SmallDisk {
  readonly directory: string;
  readonly #sizeBytes: number;

  /** `directory` is made where it is not there. Undefined: nobody may mount here. */
  static mount(directory: string, sizeBytes: number, owner?: Account): SmallDisk | undefined {
    const mount = findProgram("mount");
    if (mount === undefined || findProgram("umount") === undefined) return undefined;
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const flags = ["-t", "tmpfs", "-o", `size=${sizeBytes},mode=0700`, "tmpfs", directory];
    if (spawnSync(mount, flags, { stdio: "ignore" }).status !== 0) return undefined;
    if (owner !== undefined) chownSync(directory, owner.uid, owner.gid);
    return new SmallDisk(directory, sizeBytes);
  }

  static get isPossible(): boolean {
    const probe = mkdtempSync(join(tmpdir(), "tenure-mount-"));
    const disk = SmallDisk.mount(probe, 1024 * 1024);
    disk?.unmount();
    rmdirSync(probe);
    return disk !== undefined;
  }

  private constructor(directory: string, sizeBytes: number) {
    this.directory = directory;
    this.#sizeBytes = sizeBytes;
  }

  /** Writes a file until there is no room left; removing it makes room again. */
  fill(file: string): void {
    const descriptor = openSync(file, "w");
    try {
      const chunk = new Uint8Array(4 * 1024);
      for (let written = 0; written <= this.#sizeBytes;) written += writeSync(descriptor, chunk);
      throw new Error("the small file system holds more than its size");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    } finally {
      closeSync(descriptor);
    }
  }

  unmount(): void {
    spawnSync(findProgram("umount") ?? "", ["-l", this.directory], { stdio: "ignore" });
  }
}
