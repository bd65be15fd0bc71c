// Snapshots as files: fetched from a server and checked before they get their name, or checked alone, without a server.
// A file that is there is whole: it is written beside its place, synced, checked and renamed.

import { createWriteStream } from "node:fs";
import { access, open, readFile, rename, rm, stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { TenureError } from "../core/kit/errors.ts";
import { SNAPSHOT_BYTES_MAX, WAL_FRAME_PAYLOAD_BYTES_MAX } from "../core/kit/limits.ts";
import type { Configuration } from "../core/raft/index.ts";
import { decodeSnapshotFile } from "../core/wal/index.ts";
import { systemDigest } from "../drivers/system/digest.ts";
import type { Client } from "../client/index.ts";
import { bytesText, statusOf } from "./cluster-view.ts";
import { columns } from "./output.ts";

const FILE_BYTES_MAX = SNAPSHOT_BYTES_MAX + WAL_FRAME_PAYLOAD_BYTES_MAX;
/** A server that saves one first folds and syncs up to 256 MiB. */
const SAVE_LIMIT_MS = 60_000;

export interface SnapshotFile {
  readonly file: string;
  readonly bytes: number;
  readonly index: number;
  readonly term: number;
  readonly configuration: Configuration;
  /** Where it came from; null of a file that was only checked. */
  readonly url: string | null;
}

export async function verifySnapshot(file: string): Promise<SnapshotFile> {
  const bytes = await contentsOf(file);
  const found = decodeSnapshotFile(bytes, systemDigest);
  switch (found.kind) {
    case "whole": {
      const { index, term, configuration } = found.meta;
      return { file, bytes: bytes.length, index, term, configuration, url: null };
    }
    case "newer":
      throw new TenureError(
        "FORMAT_UNSUPPORTED",
        `${file} has format version ${found.version}, which this release can't read; use the release that wrote it, or a newer one.`,
      );
    default:
      throw new TenureError(
        "SNAPSHOT_INVALID",
        `${file} is not a whole snapshot: ${found.why}. Do not restore from it; fetch it again.`,
      );
  }
}

export async function saveSnapshot(client: Client, file: string): Promise<SnapshotFile> {
  if (await exists(file))
    throw new TenureError("CONFIG_INVALID", `${file} is there already; give another name, or move it away.`);
  const node = await nodeToAsk(client);
  const { url } = await client.saveSnapshot({ url: node, timeoutMs: SAVE_LIMIT_MS });
  const part = `${file}.part`;
  try {
    await pipeline(
      Readable.fromWeb((await client.downloadSnapshot(url)) as Parameters<typeof Readable.fromWeb>[0]),
      createWriteStream(part, { mode: 0o600 }),
    );
    await sync(part);
    const found = await verifySnapshot(part);
    await rename(part, file);
    return { ...found, file, url };
  } catch (error) {
    await rm(part, { force: true });
    throw TenureError.is(error)
      ? error
      : new TenureError(
          "BACKEND_UNAVAILABLE",
          `the snapshot could not be fetched: ${(error as Error).message}. Nothing was written; try again.`,
          { cause: error },
        );
  }
}

/** The leader has everything; without one, whoever is furthest, for that is when a snapshot is wanted most. */
async function nodeToAsk(client: Client): Promise<string> {
  const answers = await client.nodes();
  const { view } = statusOf(answers);
  const found = answers.find((answer) => answer.view === view && view !== null);
  if (found !== undefined) return found.url;
  const each = answers.map(({ url, why }) => `${url}: ${why ?? "?"}`);
  throw new TenureError("BACKEND_UNAVAILABLE", `no server answers: ${each.join("; ")}.`);
}

async function contentsOf(file: string): Promise<Uint8Array> {
  try {
    const { size } = await stat(file);
    if (size > FILE_BYTES_MAX)
      throw new TenureError("SNAPSHOT_INVALID", `${file} has ${size} bytes, and a snapshot at most ${FILE_BYTES_MAX}.`);
    return await readFile(file);
  } catch (error) {
    if (TenureError.is(error)) throw error;
    const why = (error as NodeJS.ErrnoException).code === "ENOENT" ? "there is no such file" : (error as Error).message;
    throw new TenureError("SNAPSHOT_INVALID", `can't read ${file}: ${why}.`, { cause: error });
  }
}

async function exists(file: string): Promise<boolean> {
  return await access(file).then(
    () => true,
    () => false,
  );
}

async function sync(file: string): Promise<void> {
  const handle = await open(file, "r+");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

export function snapshotObject({ file, bytes, index, term, configuration, url }: SnapshotFile) {
  const { voters, learners, votersOutgoing } = configuration;
  return { file, bytes, index, term, voters, learners, is_joint: votersOutgoing.length > 0, url };
}

export function snapshotText({ file, bytes, index, term, configuration, url }: SnapshotFile): string {
  const { voters, learners, votersOutgoing } = configuration;
  return columns([
    ["file", file],
    ["checksum", "ok"],
    ["index", String(index)],
    ["term", String(term)],
    ["size", bytesText(bytes)],
    ["voters", voters.join(", ")],
    ...(votersOutgoing.length > 0 ? [["leaving", votersOutgoing.join(", ")]] : []),
    ...(learners.length > 0 ? [["learners", learners.join(", ")]] : []),
    ...(url === null ? [] : [["from", url]]),
  ]);
}
