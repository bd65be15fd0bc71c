// The simulated network between sites, by itself: whoever asks is answered or refused in time, whatever becomes of the message; streams are
// in order, one message at a time, and end at both ends.

import { describe, expect, it } from "vitest";
import type { LinkMessage, SiteAnswer } from "../../ports/mesh/sites.ts";
import { type Boot, World } from "../kernel/index.ts";
import { type Door, type Question, Transport, type Weather } from "./transport.ts";

const FAIR: Weather = { wayMs: [1, 5], lossRate: 0, twiceRate: 0, lateRate: 0, lateFactor: 20 };
const ASKED: Question = { kind: "heartbeat", id: "a" };

function network(weather: Partial<Weather> = {}) {
  const boots = new Map<string, Boot>();
  const world = new World({ seed: 1, nodes: ["a-n1", "b-n1"], start: (boot) => void boots.set(boot.node, boot) });
  const met: string[] = [];
  const underWay: number[] = [];
  const transport = new Transport(
    world,
    { ...FAIR, ...weather },
    {
      sent: () => undefined,
      changed: (_from, _to, parcel) => parcel,
      underWay: (_from, _to, by) => underWay.push(by),
      met: (what) => met.push(what),
    },
  );
  for (const name of ["a-n1", "b-n1"]) world.start(name);
  const settled = async <T>(promise: Promise<T>, withinMs = 10_000): Promise<T | Error> => {
    let outcome: T | Error | undefined;
    promise.then(
      (value) => (outcome = value),
      (error: unknown) => (outcome = error as Error),
    );
    await world.run(() => outcome !== undefined, { untilMs: world.nowMs + withinMs });
    return outcome ?? new Error("not settled");
  };
  const sites = transport.sites(boots.get("a-n1")!);
  const door = (one: Partial<Door>): Door => {
    const made: Door = {
      isAlive: boots.get("b-n1")!.isAlive,
      answer: () => Promise.resolve({ kind: "answer", body: null }),
      stream: () => Promise.resolve({ kind: "answer", body: null }),
      ...one,
    };
    transport.listen("b-n1", made);
    return made;
  };
  const beat = (): Promise<SiteAnswer<null>> => sites.heartbeat("http://b-n1", "a", new AbortController().signal);
  return { world, transport, sites, door, settled, beat, met, underWay };
}

describe("requests between sites", () => {
  it("are answered by whoever listens", async () => {
    const { door, beat, settled } = network();
    const asked: Question[] = [];
    door({
      answer: (question) => {
        asked.push(question);
        return Promise.resolve({ kind: "answer", body: null });
      },
    });
    expect(await settled(beat())).toEqual({ kind: "answer", body: null });
    expect(asked).toEqual([ASKED]);
  });

  it.each([
    ["nobody listens", {}, () => undefined],
    ["they are lost", { lossRate: 1 }, ({ door }: ReturnType<typeof network>) => door({})],
    [
      "the way is cut",
      {},
      ({ door, world }: ReturnType<typeof network>) => {
        door({});
        world.network.cutOneWay("a-n1", "b-n1");
      },
    ],
    [
      "the way back is cut",
      {},
      ({ door, world }: ReturnType<typeof network>) => {
        door({});
        world.network.cutOneWay("b-n1", "a-n1");
      },
    ],
  ] as const)("are refused in time where %s", async (_why, weather, prepare) => {
    const made = network(weather);
    prepare(made);
    expect(await made.settled(made.beat())).toMatchObject({ code: "BACKEND_UNAVAILABLE" });
  });

  it("come twice, overtake each other, and share nothing with what was sent", async () => {
    const { door, settled, beat, met, world } = network({ twiceRate: 1 });
    let times = 0;
    door({
      answer: () => {
        times++;
        return Promise.resolve({ kind: "answer", body: null });
      },
    });
    await settled(Promise.all([beat(), beat(), beat()]));
    await world.runFor(100);
    expect(times).toBe(6);
    expect(met).toContain("twice");
    expect(met).toContain("overtaken");
  });
});

describe("streams between sites", () => {
  const heads = (at: number): LinkMessage => ({ kind: "heads", heads: [], atMs: at });
  const opening = { controller: "a", heads: [] };

  it("carry messages in order, the next one when the last was taken", async () => {
    const { door, sites, settled, world } = network();
    const sent: number[] = [];
    door({
      stream: async (_opening, _signal, send) => {
        for (let at = 0; at < 5; at++) {
          sent.push(at);
          await send(heads(at));
        }
        return { kind: "answer", body: null };
      },
    });
    const got: number[] = [];
    const late: number[] = [];
    const receive = async (message: LinkMessage): Promise<void> => {
      if (message.kind === "heads") got.push(message.atMs);
      late.push(sent.length - got.length);
      await new Promise<void>(
        (resolve) => void world.scheduler.schedule(world.nowMs + 50, world.scheduler.owner("x"), resolve),
      );
    };
    const ended = await settled(sites.stream("http://b-n1", opening, new AbortController().signal, receive));
    expect(ended).toEqual({ kind: "answer", body: null });
    expect(got).toEqual([0, 1, 2, 3, 4]);
    expect(Math.max(...late)).toBe(0);
  });

  const untilAborted = (signal: AbortSignal): Promise<SiteAnswer<null>> =>
    new Promise<SiteAnswer<null>>((resolve) => {
      signal.addEventListener("abort", () => resolve({ kind: "answer", body: null }));
    });

  it.each([
    ["a cut that lasts", "cut"],
    ["the death of the other end", "crash"],
  ] as const)("end with %s", async (_why, harm) => {
    const { door, sites, settled, world } = network();
    door({
      stream: (_opening, signal) => untilAborted(signal),
    });
    const stream = sites.stream("http://b-n1", opening, new AbortController().signal, () => Promise.resolve());
    await world.runFor(20);
    if (harm === "cut") world.network.cutOneWay("b-n1", "a-n1");
    else world.crash("b-n1");
    expect(await settled(stream)).toMatchObject({ code: "BACKEND_UNAVAILABLE" });
  });

  it("end at the other end too when they are given up", async () => {
    const { door, sites, settled, world } = network();
    let isOver = false;
    door({
      stream: async (_opening, signal) => {
        const answer = await untilAborted(signal);
        isOver = true;
        return answer;
      },
    });
    const gone = new AbortController();
    const stream = sites.stream("http://b-n1", opening, gone.signal, () => Promise.resolve());
    await world.runFor(20);
    gone.abort();
    expect(await settled(stream)).toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    await world.runFor(20);
    expect(isOver).toBe(true);
  });
});
