// Faults below the disk driver, for tests and chaos: `openDataDirectory(path, { io: faults.io })`. They replace calls to
// the operating system, so that what retries, cuts back and gives up is the driver's own code.
//
// A plain object with methods: a chaos process gets a message from its parent and calls the method of that name. Each
// fault counts how often it struck, because a fault that never fired is a failed run (trap 33).

import { systemIo, type DiskIo } from "../../src/drivers/disk/index.ts";

export interface FaultCounts {
  noRoom: number;
  failedSyncs: number;
  delayedSyncs: number;
  hungSyncs: number;
}

export class DiskFaults {
  readonly counts: FaultCounts = { noRoom: 0, failedSyncs: 0, delayedSyncs: 0, hungSyncs: 0 };
  readonly io: DiskIo;
  #roomBytes = Infinity;
  #noRoomCode = "ENOSPC";
  #syncCode: string | null = null;
  #delayMs = 0;
  #isHanging = false;
  #hung: (() => void)[] = [];

  constructor(base: DiskIo = systemIo) {
    const sync = async (label: string, work: () => Promise<void>): Promise<void> => {
      await this.#beforeSync();
      // What was written is lost or not, and nobody will ever be told again: the kernel has marked it as clean.
      if (this.#syncCode !== null) throw this.#strike("failedSyncs", this.#syncCode, label);
      await work();
    };
    this.io = {
      ...base,
      write: (fd, bytes, positionBytes, label) => this.#write(base.write, fd, bytes, positionBytes, label),
      writeSynced: async (fd, bytes, positionBytes, label) => {
        let wroteBytes = 0;
        await sync(label, async () => {
          wroteBytes = await this.#write(base.writeSynced, fd, bytes, positionBytes, label);
        });
        return wroteBytes;
      },
      fdatasync: (fd, label) => sync(label, () => base.fdatasync(fd, label)),
      fsync: (fd, label) => sync(label, () => base.fsync(fd, label)),
    };
  }

  /** No more than `roomBytes` can be written from now on, until `free`. */
  fill(roomBytes = 0, code: "ENOSPC" | "EDQUOT" = "ENOSPC"): void {
    this.#roomBytes = roomBytes;
    this.#noRoomCode = code;
  }

  free(): void {
    this.#roomBytes = Infinity;
  }

  /** Every sync fails, until `heal`. */
  failSyncs(code = "EIO"): void {
    this.#syncCode = code;
  }

  /** Every sync takes so much longer, until `heal`. */
  delaySyncs(delayMs: number): void {
    this.#delayMs = delayMs;
  }

  /** No sync comes back, until `heal`. */
  hangSyncs(): void {
    this.#isHanging = true;
  }

  /** Ends all of them; syncs that hang go on. */
  heal(): void {
    this.free();
    this.#syncCode = null;
    this.#delayMs = 0;
    this.#isHanging = false;
    const hung = this.#hung;
    this.#hung = [];
    for (const go of hung) go();
  }

  async #write(
    write: DiskIo["write"],
    fd: number,
    bytes: Uint8Array,
    positionBytes: number,
    label: string,
  ): Promise<number> {
    if (this.#roomBytes === 0) throw this.#strike("noRoom", this.#noRoomCode, label);
    const wroteBytes = await write(fd, bytes.subarray(0, this.#roomBytes), positionBytes, label);
    // It may have been filled while this write was under way.
    this.#roomBytes = Math.max(0, this.#roomBytes - wroteBytes);
    return wroteBytes;
  }

  async #beforeSync(): Promise<void> {
    if (this.#delayMs > 0) {
      this.counts.delayedSyncs++;
      await new Promise((resolve) => setTimeout(resolve, this.#delayMs));
    }
    if (this.#isHanging) {
      this.counts.hungSyncs++;
      await new Promise<void>((resolve) => this.#hung.push(resolve));
    }
  }

  #strike(what: keyof FaultCounts, code: string, label: string): Error {
    this.counts[what]++;
    return Object.assign(new Error(`${code}: injected into ${label}`), { code });
  }
}
