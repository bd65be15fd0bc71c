// hypercore: a signed, append-only log that is replicated by pulling ranges and proofs: the nearest to a line of the mesh that npm has. Both
// ends are in this process, over a stream in memory; ours are two servers over HTTP, and that is in its favour.
//
// The parts of its interface that are used stand here: `npm run check` does not need the peers to be installed.

import { createRequire } from "node:module";
import { join } from "node:path";
import { removeDirectory, temporaryDirectory } from "../test/servers/directories.ts";

const NAME = "hypercore";

interface Duplex {
  pipe(to: Duplex): Duplex;
  destroy(): void;
  on(event: "error", listener: () => void): void;
}

interface Core {
  readonly key: Uint8Array;
  readonly length: number;
  ready(): Promise<void>;
  append(blocks: readonly Uint8Array[]): Promise<unknown>;
  replicate(isInitiator: boolean): Duplex;
  download(range: { start: number; end: number }): { done(): Promise<unknown> };
  close(): Promise<void>;
}

type Library = new (storage: string, key?: Uint8Array) => Core;

export interface HypercoreFigures {
  readonly version: string;
  readonly append_per_s: number;
  readonly replicate_per_s: number;
}

/** Null where it is not installed. */
export async function hypercore(events: number, batch: number, bytes: number): Promise<HypercoreFigures | null> {
  const require = createRequire(import.meta.url);
  let Hypercore: Library;
  try {
    Hypercore = ((await import(NAME)) as { default: Library }).default;
  } catch {
    return null;
  }
  const { version } = require(`${NAME}/package.json`) as { version: string };
  const directory = await temporaryDirectory("bench-mesh", undefined);
  const ours = new Hypercore(join(directory, "one"));
  try {
    await ours.ready();
    let startedMs = performance.now();
    for (let made = 0; made < events; made += batch) {
      const blocks = Array.from({ length: Math.min(batch, events - made) }, () => new Uint8Array(bytes).fill(made));
      await ours.append(blocks);
    }
    const appendMs = performance.now() - startedMs;
    const theirs = new Hypercore(join(directory, "other"), ours.key);
    await theirs.ready();
    startedMs = performance.now();
    const [one, other] = [ours.replicate(true), theirs.replicate(false)];
    for (const stream of [one, other]) stream.on("error", () => undefined);
    one.pipe(other).pipe(one);
    await theirs.download({ start: 0, end: events }).done();
    const replicateMs = performance.now() - startedMs;
    one.destroy();
    other.destroy();
    await theirs.close();
    return {
      version,
      append_per_s: Math.round((events * 1_000) / appendMs),
      replicate_per_s: Math.round((events * 1_000) / replicateMs),
    };
  } finally {
    await ours.close();
    await removeDirectory(directory);
  }
}
