// Free ports of the loopback address, each handed out to one process only, for as long as that process lives.
//
// They are drawn from below the range that the kernel hands out by itself (Linux from 32768, others from 49152):
// a server that is stopped and started again must find its port free, although connections come and go meanwhile.
//
// That a port is free says nothing of the moment when the server binds it: another test may draw it in between, or while
// the server is stopped. So a port is claimed by a UDP socket of the same number, which is in nobody's way: TCP has numbers
// of its own. The claim ends with the process, however that ends.

import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { createServer } from "node:net";

const HOST = "127.0.0.1";
const LOWEST = 15_000;
const HIGHEST = 32_000;
const TRIES_MAX = 100;

/** A port that is free, and that no other call gets while this process lives, here or in another process. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const port = randomInt(LOWEST, HIGHEST);
    if ((await claim(port)) && (await isFree(port))) return port;
  }
  throw new Error(`no free port between ${LOWEST} and ${HIGHEST} in ${TRIES_MAX} tries`);
}

/** Exported for its test. */
export function claim(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createSocket("udp4");
    socket.once("error", () => {
      socket.close();
      resolve(false);
    });
    socket.bind({ port, address: HOST, exclusive: true }, () => {
      socket.unref();
      resolve(true);
    });
  });
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, HOST, () => probe.close(() => resolve(true)));
  });
}
