// Preloaded into servers of `chaos txn` (node --import, with ?armed=FILE): kills its process with SIGKILL at the n-th passage of a point that FILE names,
// from the moment at which SIGUSR2 says that there is something to read. Both are logged as a server logs, so that whoever reads its log knows what happened
// and where. Points are planted into the sources as they are loaded (txn-points.ts).

import { readFileSync, writeSync } from "node:fs";

export interface Armed {
  /** By the point: at which passage from then on, counted on where it stood there before. */
  readonly points: Readonly<Record<string, number>>;
  /** Reported again when it is read. */
  readonly order: number;
}

const file = new URL(import.meta.url).searchParams.get("armed");
const STDERR = 2;
let left = new Map<string, number>();

if (file !== null) {
  process.on("SIGUSR2", () => {
    const { points, order } = JSON.parse(readFileSync(file, "utf8")) as Armed;
    left = new Map(Object.entries(points).map(([point, passages]) => [point, left.get(point) ?? passages]));
    told({ event: "txn-armed", order });
  });
  Object.assign(globalThis, { txnPoint: passed });
}

function passed(point: string): void {
  const passages = left.get(point);
  if (passages === undefined) return;
  left.set(point, passages - 1);
  if (passages > 1) return;
  told({ event: "txn-killed-at", point });
  process.kill(process.pid, "SIGKILL");
}

function told(fields: object): void {
  const line = `${JSON.stringify({ level: "info", time: new Date().toISOString(), msg: "chaos", ...fields })}\n`;
  for (;;) {
    try {
      writeSync(STDERR, line);
      return;
    } catch (error) {
      // A full pipe, which its reader empties.
      if (!(error instanceof Error && "code" in error && error.code === "EAGAIN")) throw error;
    }
  }
}
