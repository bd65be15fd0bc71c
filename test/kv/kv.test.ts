// The test store itself: machine, protocol, and the client's honesty against real node processes. What is measured or
// judged with it is worth no more than this.

import { connect, createServer, type Server } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { waitFor } from "../servers/index.ts";
import { KvClient } from "./client.ts";
import { KvCluster } from "./cluster.ts";
import { encodeCommand, KvMachine } from "./machine.ts";
import {
  encodeAnswer,
  encodeRequest,
  decodeAnswer,
  decodeRequest,
  type Frame,
  FrameReader,
  FrameWriter,
} from "./protocol.ts";

const bytes = (text: string): Uint8Array => Buffer.from(text);
const textOf = (value: Uint8Array | null): string | null => (value === null ? null : Buffer.from(value).toString());

describe("the machine", () => {
  const applied = (machine: KvMachine, index: number, data: Uint8Array): void => machine.apply({ index, data });

  test("puts, compares and says what a cas found", () => {
    const machine = new KvMachine();
    applied(machine, 1, encodeCommand({ kind: "cas", key: "k", expected: bytes("1"), value: bytes("2") }));
    applied(machine, 2, encodeCommand({ kind: "put", key: "k", value: bytes("1") }));
    applied(machine, 3, encodeCommand({ kind: "cas", key: "k", expected: bytes("9"), value: bytes("2") }));
    expect(textOf(machine.get("k"))).toBe("1");
    applied(machine, 4, encodeCommand({ kind: "cas", key: "k", expected: bytes("1"), value: bytes("2") }));
    expect(textOf(machine.get("k"))).toBe("2");
    expect([1, 3, 4].map((index) => machine.takeCasResult(index))).toEqual(["missing", "different", "done"]);
  });

  test("a snapshot restores the state, the index and the hash, and replaces what was there", () => {
    const machine = new KvMachine();
    for (let n = 1; n <= 50; n++) {
      applied(machine, n, encodeCommand({ kind: "put", key: `k${n % 7}`, value: bytes(String(n)) }));
    }
    const other = new KvMachine();
    applied(other, 1, encodeCommand({ kind: "put", key: "gone", value: bytes("x") }));
    other.restore(machine.snapshot());
    expect(other).toMatchObject({ size: 7, applied: 50, hash: machine.hash });
    expect(other.get("gone")).toBeNull();
    expect(textOf(other.get("k1"))).toBe("50");
    other.restore(new Uint8Array(0));
    expect(other).toMatchObject({ size: 0, applied: 0, hash: 0 });
  });

  test("bytes that are no command change nothing but the hash", () => {
    const machine = new KvMachine();
    for (const data of [bytes(""), bytes("x"), new Uint8Array([1, 0, 0, 255, 255]), new Uint8Array([9, 0, 0, 0, 0])]) {
      applied(machine, 1, data);
    }
    expect(machine.size).toBe(0);
  });
});

describe("the protocol", () => {
  test("frames survive any cutting into pieces", () => {
    const writer = new FrameWriter();
    encodeRequest(writer, 7, "put", bytes("first"));
    encodeRequest(writer, 8, "get", bytes(""));
    encodeRequest(writer, 9, "cas", bytes("x".repeat(4_000)));
    const stream = writer.take();
    expect(writer.isEmpty).toBe(true);
    for (const pieceBytes of [1, 5, 9, 10, 1_000, stream.length]) {
      const reader = new FrameReader();
      const frames: Frame[] = [];
      for (let at = 0; at < stream.length; at += pieceBytes) {
        reader.read(stream.subarray(at, at + pieceBytes), (frame) => frames.push(frame));
      }
      expect(frames.map(decodeRequest)).toMatchObject([
        { id: 7, kind: "put" },
        { id: 8, kind: "get" },
        { id: 9, kind: "cas" },
      ]);
    }
  });

  test("every answer is read as it was written", () => {
    const answers = [
      { kind: "committed", index: 2 ** 40, done: false },
      { kind: "value", index: 3, value: null },
      { kind: "value", index: 3, value: Buffer.from("v") },
      { kind: "refused", code: "NOT_LEADER", leader: "" },
      { kind: "unknown" },
      { kind: "leader", term: 9, leader: "n2" },
    ] as const;
    const writer = new FrameWriter();
    for (const [id, answer] of answers.entries()) encodeAnswer(writer, id, answer);
    const read: unknown[] = [];
    new FrameReader().read(writer.take(), (frame) => read.push(decodeAnswer(frame)));
    expect(read).toEqual(answers);
  });

  test("a frame that is too long is refused before anything is kept of it", () => {
    const header = Buffer.alloc(9);
    header.writeUInt32BE(2 ** 31, 0);
    expect(() => new FrameReader().read(header, () => undefined)).toThrow("a frame of 2147483648 bytes");
  });
});

describe("a client and a node that plays tricks", () => {
  let server: Server | undefined;
  let client: KvClient | undefined;
  afterEach(() => {
    client?.close();
    server?.close();
  });

  async function against(
    serve: (write: (bytes: Buffer) => void, frame: Frame, end: () => void) => void,
  ): Promise<KvClient> {
    server = createServer((socket) => {
      const reader = new FrameReader();
      socket.on("error", () => undefined);
      socket.on("data", (chunk: Buffer) =>
        reader.read(chunk, (frame) =>
          serve(
            (out) => void socket.write(out),
            frame,
            () => socket.destroy(),
          ),
        ),
      );
    });
    await new Promise<void>((resolve) => server!.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    return (client = new KvClient({ ports: { n1: port }, timeoutMs: 300 }));
  }

  test("trap 66: a write whose connection breaks after it was sent is unknown, and is not sent again (trap 65)", async () => {
    let asked = 0;
    const broken = await against((_, __, end) => {
      asked++;
      end();
    });
    expect(await broken.put("k", "1")).toEqual({ outcome: "unknown" });
    expect(asked).toBe(1);
  });

  test("trap 66: a write that is not answered in time is unknown", async () => {
    const silent = await against(() => undefined);
    expect(await silent.put("k", "1")).toEqual({ outcome: "unknown" });
  });

  test("a refused write is asked again, because nothing was written", async () => {
    let asked = 0;
    const slow = await against((write, { id }) => {
      const out = new FrameWriter();
      asked++;
      if (asked < 3) encodeAnswer(out, id, { kind: "refused", code: "NOT_LEADER", leader: "" });
      else encodeAnswer(out, id, { kind: "committed", index: 4, done: true });
      write(out.take());
    });
    expect(await slow.put("k", "1")).toEqual({ outcome: "committed", index: 4, done: true, node: "n1" });
    expect(asked).toBe(3);
  });

  test("where nobody listens a write is refused, not unknown: it never left", async () => {
    const never = new KvClient({ ports: { n1: 1, n2: 2 }, timeoutMs: 200 });
    expect(await never.put("k", "1")).toEqual({ outcome: "refused", code: "ERR_NO_LEADER" });
    expect(await never.get("k")).toEqual({ outcome: "refused", code: "ERR_NO_LEADER" });
    never.close();
  });
});

describe("three node processes", () => {
  let cluster: KvCluster;
  let client: KvClient;
  beforeAll(async () => {
    cluster = await KvCluster.start(3, { isProxied: false });
    client = new KvClient({ ports: cluster.ports });
  }, 60_000);
  afterAll(async () => {
    client.close();
    await cluster.end();
  });

  test("put, get at every node, and cas", async () => {
    expect(await client.put("a", "1")).toMatchObject({ outcome: "committed", done: true });
    for (const node of ["n1", "n2", "n3", null]) expect(await client.get("a", node)).toMatchObject({ value: "1" });
    expect(await client.get("never written")).toMatchObject({ outcome: "value", value: null });
    expect(await client.cas("a", "1", "2")).toMatchObject({ outcome: "committed", done: true });
    expect(await client.cas("a", "1", "3")).toMatchObject({ outcome: "committed", done: false });
    expect(await client.get("a")).toMatchObject({ value: "2" });
  });

  test("a thousand requests on one connection are answered each by its own answer", async () => {
    const writes = await Promise.all(Array.from({ length: 1_000 }, (_, n) => client.put(`many/${n}`, String(n))));
    expect(new Set(writes.map((written) => (written.outcome === "committed" ? written.index : 0))).size).toBe(1_000);
    const reads = await Promise.all(Array.from({ length: 1_000 }, (_, n) => client.get(`many/${n}`)));
    expect(reads.every((got, n) => got.outcome === "value" && got.value === String(n))).toBe(true);
  });

  test("a node refuses bytes that are not its protocol by ending the connection, and serves on", async () => {
    const { kvPort } = await cluster.leader();
    const socket = connect(kvPort, "127.0.0.1");
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.on("error", () => undefined);
    socket.resume();
    socket.write(Buffer.alloc(64, 0xff));
    await closed;
    expect(await client.put("after", "1")).toMatchObject({ outcome: "committed" });
  });

  test("the leader is killed, the next one is found, and what was acknowledged is there on all after the restart", async () => {
    await client.put("before", "kept");
    const leader = await cluster.leader();
    await leader.kill();
    await waitFor("a write at another leader", async () => (await client.put("x", "1")).outcome === "committed");
    expect(await client.get("before")).toMatchObject({ value: "kept" });
    expect(client.leader).not.toBe(leader.name);
    await leader.start();
    expect(leader.recovery).not.toBe("fresh");
    for (const node of cluster.nodes.keys()) expect(await client.get("before", node)).toMatchObject({ value: "kept" });
    await waitFor("equal states", async () => {
      const states = await Promise.all([...cluster.nodes.values()].map((node) => node.status()));
      return new Set(states.map(({ hashAt, hash }) => `${hashAt} ${hash}`)).size === 1;
    });
  });

  test("trap 23: a failed sync ends the process, and it says why", async () => {
    const leader = await cluster.leader();
    leader.expectEnd();
    await leader.disk({ kind: "sync-error" });
    await waitFor("a write at another leader", async () => (await client.put("y", "1")).outcome === "committed");
    await waitFor("the process to end itself", () => !leader.isRunning);
    expect(leader.fatal).toContain("synced");
    await leader.start();
  });

  test("trap 30: a hung disk ends leadership, and the node serves again when the disk does", async () => {
    const leader = await cluster.leader();
    await leader.disk({ kind: "hung" });
    await waitFor("a write at another leader", async () => {
      const written = await client.put("z", "1");
      return written.outcome === "committed" && written.node !== leader.name;
    });
    await leader.disk({ kind: "none" });
    expect(await client.get("z", leader.name)).toMatchObject({ value: "1" });
  });

  test("trap 13: a wiped node comes back as another peer and is swapped in", async () => {
    const wiped = [...cluster.nodes.values()].at(-1)!;
    const old = wiped.peer!;
    await wiped.kill();
    wiped.wipe();
    await wiped.start();
    expect(wiped.peer).not.toBe(old);
    await waitFor("the swap", async () => {
      const status = await (await cluster.leader()).status();
      return status.voters.includes(wiped.peer!) && !status.voters.includes(old) && !status.isJoint;
    });
    expect(await client.get("before", wiped.name)).toMatchObject({ value: "kept" });
  });
});
