// A node of a wire as a process of its own, for tests that kill and freeze it. Its options come as JSON, it says "ready"
// when it listens, sends a message to everybody twenty times a second, and ends when its standard input does.

import { peerKey } from "../../src/core/kit/ids.ts";
import { seededRandom } from "../../src/core/kit/random.ts";
import { listenWire, type PeerTls } from "../../src/drivers/wire/index.ts";

interface ChildOptions {
  readonly nodeId: string;
  readonly port: number;
  readonly incarnation: string;
  readonly seeds: Readonly<Record<string, string>>;
  readonly tls: PeerTls | null;
}

const BEAT_MS = 50;
const { nodeId, port, incarnation, seeds, tls } = JSON.parse(process.argv[2] ?? "") as ChildOptions;
const quiet = (): void => undefined;
const tcp = await listenWire({
  listen: { host: "127.0.0.1", port },
  advertise: null,
  apiUrl: null,
  clusterId: "c1",
  nodeId,
  seeds,
  tls,
  leaseEnabled: false,
  random: seededRandom(`${nodeId} ${process.pid}`),
  logger: { info: quiet, warn: quiet, error: quiet },
});
const wire = tcp.connect(peerKey(nodeId, incarnation));
wire.start({ message: quiet, peerSeen: quiet, peerGone: quiet });
setInterval(() => {
  for (const { peer } of tcp.list()) if (peer !== null) wire.send(peer, new TextEncoder().encode("beat"));
}, BEAT_MS);
process.stdin.resume().on("end", () => process.exit());
process.stdout.write("ready\n");
