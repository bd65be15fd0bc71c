// Free ports of the loopback address.
//
// They are drawn from below the range that the kernel hands out by itself (Linux from 32768, others from 49152):
// a server that is stopped and started again must find its port free, although connections come and go meanwhile.

import { randomInt } from "node:crypto";
import { createServer } from "node:net";

const LOWEST = 15_000;
const HIGHEST = 32_000;
const TRIES_MAX = 100;

/** A port that was free when this resolved. They are random, so that test files that run together do not meet. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const port = randomInt(LOWEST, HIGHEST);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port between ${LOWEST} and ${HIGHEST} in ${TRIES_MAX} tries`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}
