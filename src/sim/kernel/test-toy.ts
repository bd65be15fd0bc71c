// A process for the kernel's own tests: it stamps its disk, gossips a counter, and syncs each new value to disk.
// It knows nothing of consensus, and touches every port.

import { type PeerKey, peerKey } from "../../core/kit/ids.ts";
import type { DiskFile } from "../../ports/disk.ts";
import type { Boot } from "./world.ts";

const GOSSIP_MS = 10;

/** Notes what each life saw, for tests to read. */
export type Diary = (node: string, line: string) => void;

export function toy(diary: Diary = () => undefined): (boot: Boot) => void {
  return (boot) => {
    run(boot, diary).catch((error: unknown) => boot.fatal(error));
  };
}

async function run(boot: Boot, diary: Diary): Promise<void> {
  const { clock, disk, node, random } = boot;
  const names = await disk.list("boot");
  const file = names.includes("count") ? await disk.open("count", "boot") : await disk.create("count", "boot");
  await disk.syncDirectory("boot");
  const self = peerKey(node, "a");
  const wire = boot.wire(self);
  const peers = new Set<PeerKey>();
  let count = 0;
  let saved = Promise.resolve();
  const save = (): void => {
    const value = ++count;
    saved = saved.then(() => write(file, value)).catch((error: unknown) => boot.fatal(error));
  };
  wire.start({
    message: (from, bytes) => {
      diary(node, `message ${from} ${bytes[0] ?? -1}`);
      if (bytes.length === 2 && random.chance(0.1)) save();
    },
    peerSeen: (peer) => {
      peers.add(peer);
      diary(node, `seen ${peer}`);
    },
    peerGone: (peer) => diary(node, `gone ${peer}`),
  });
  const gossip = (): void => {
    for (const peer of [...peers].sort()) wire.send(peer, Uint8Array.of(count & 255, boot.life));
    clock.setTimer(clock.monotonicMs() + GOSSIP_MS * random.between(0.5, 1.5), gossip);
  };
  gossip();
  save();
}

async function write(file: DiskFile, value: number): Promise<void> {
  await file.append(Uint8Array.of(value & 255), "count");
  await file.fdatasync("count");
}
