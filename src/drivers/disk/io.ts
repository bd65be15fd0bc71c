// The calls to the operating system that the disk driver makes, as one table: a test or a chaos run replaces some of
// them, below the code that retries and gives up, so that it is that code which is tried.
//
// All of them run in libuv's thread pool, none blocks the event loop (but for `makeDirectory`, once, before there is a loop to block). libuv itself repeats calls that a signal
// interrupted (EINTR), so that never gets here.

import {
  access,
  close,
  constants,
  fdatasync,
  fstat,
  fsync,
  ftruncate,
  open,
  read,
  readdir,
  rename,
  stat,
  statfs,
  unlink,
  write,
} from "node:fs";
import { makeDirectories } from "./directories.ts";

type Write = (fd: number, bytes: Uint8Array, positionBytes: number, label: string) => Promise<number>;

export interface DiskIo {
  open(path: string, flags: number, mode: number): Promise<number>;
  close(fd: number): Promise<void>;
  /** May write less than it was given, as the kernel does. */
  readonly write: Write;
  /** The same on a descriptor that was opened with O_DSYNC: what it says it has written is durable. */
  readonly writeSynced: Write;
  read(fd: number, bytes: Uint8Array, positionBytes: number): Promise<number>;
  sizeBytes(fd: number): Promise<number>;
  truncate(fd: number, sizeBytes: number): Promise<void>;
  fdatasync(fd: number, label: string): Promise<void>;
  fsync(fd: number, label: string): Promise<void>;
  list(path: string): Promise<string[]>;
  rename(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  /** The first directory that it had to make; undefined where all of them were there. */
  makeDirectory(path: string, mode: number): Promise<string | undefined>;
  isDirectory(path: string): Promise<boolean>;
  /** Rejects where this process may not read and write it. */
  checkAccess(path: string): Promise<void>;
  freeBytes(path: string): Promise<number>;
}

type Done<T> = (error: NodeJS.ErrnoException | null, value?: T) => void;

function call<T>(start: (done: Done<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    start((error, value) => {
      if (error instanceof Error) reject(error);
      else resolve(value as T);
    });
  });
}

const writeAt: Write = (fd, bytes, positionBytes) =>
  call((done) => write(fd, bytes, 0, bytes.length, positionBytes, done));

export const systemIo: DiskIo = {
  open: (path, flags, mode) => call((done) => open(path, flags, mode, done)),
  close: (fd) => call((done) => close(fd, done)),
  write: writeAt,
  writeSynced: writeAt,
  read: (fd, bytes, positionBytes) => call((done) => read(fd, bytes, 0, bytes.length, positionBytes, done)),
  sizeBytes: async (fd) => (await call<{ size: number }>((done) => fstat(fd, done))).size,
  truncate: (fd, sizeBytes) => call((done) => ftruncate(fd, sizeBytes, done)),
  fdatasync: (fd) => call((done) => fdatasync(fd, done)),
  fsync: (fd) => call((done) => fsync(fd, done)),
  list: (path) => call((done) => readdir(path, done)),
  rename: (from, to) => call((done) => rename(from, to, done)),
  remove: (path) => call((done) => unlink(path, done)),
  makeDirectory: async (path, mode) => makeDirectories(path, mode),
  isDirectory: async (path) => (await call<{ isDirectory(): boolean }>((done) => stat(path, done))).isDirectory(),
  checkAccess: (path) => call((done) => access(path, constants.R_OK | constants.W_OK | constants.X_OK, done)),
  freeBytes: async (path) => {
    const found = await call<{ bavail: number; bsize: number }>((done) => statfs(path, done));
    return found.bavail * found.bsize;
  },
};

export function errorCode(error: unknown): string {
  return error instanceof Error ? ((error as NodeJS.ErrnoException).code ?? "") : "";
}
