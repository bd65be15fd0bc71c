// Whatever a logger, `onTransition`, a metrics registry and the work of `lead` do (trap 80): the process lives, the term goes on
// or ends in order, and its end is reported.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HOSTILE } from "../core/kit/test-hostile.ts";
import { register } from "./prometheus.ts";
import { settled } from "../loops/test-clock.ts";
import { type Rig, rig } from "./test-seat.ts";

const BLOCK_MS = 2_000;
const unhandled: unknown[] = [];
const hear = (error: unknown): void => void unhandled.push(error);

beforeEach(() => {
  unhandled.length = 0;
  process.on("unhandledRejection", hear);
});

afterEach(async () => {
  await new Promise((resolve) => void setImmediate(resolve));
  process.off("unhandledRejection", hear);
  expect(unhandled, "nobody heard of these, and the process would have ended").toEqual([]);
});

type Deed = (stage: Rig) => unknown;

const THROWS = Object.entries(HOSTILE).map(([name, make]): [string, Deed] => [
  `throws ${name}`,
  () => {
    throw make();
  },
]);
const REJECTS = Object.entries(HOSTILE).map(([name, make]): [string, Deed] => [
  `rejects later with ${name}`,
  // oxlint-disable-next-line prefer-promise-reject-errors -- that is the point
  () => Promise.resolve().then(() => Promise.reject(make())),
]);
const RETURNS = Object.entries(HOSTILE).map(([name, make]): [string, Deed] => [`returns ${name}`, make]);
const NEVER: [string, Deed] = ["never settles", () => new Promise(() => undefined)];
const BLOCKS: [string, Deed] = ["blocks the thread for two seconds", ({ clock }) => clock.stop(BLOCK_MS)];
const CLOSES: [string, Deed] = ["closes the elector", ({ elector }) => void elector.close()];
const LEADS: [string, Deed] = [
  "leads again, which is refused",
  ({ elector }) => void elector.lead(() => null).catch(() => undefined),
];
const CALLBACK_DEEDS = [...THROWS, ...REJECTS, ...RETURNS, NEVER, BLOCKS, LEADS];

/** The callback needs the rig that it is made for. */
function staged(make: (stage: () => Rig) => Parameters<typeof rig>[0]): Rig {
  const made: { stage?: Rig } = {};
  return (made.stage = rig(make(() => made.stage as Rig)));
}

/** Its only term, from the grant to the end. */
async function oneTerm(stage: Rig): Promise<void> {
  const { elector, seat, clock } = stage;
  const term = elector.acquire();
  await seat.grant(7);
  const { epoch, ended } = await term;
  expect(epoch).toBe(7);
  for (let beats = 0; beats < 3; beats++) {
    await clock.advance(1_000);
    seat.beats.at(-1)?.resolve({ sentAt: clock.now });
    await settled();
  }
  expect(elector.gate.isLeader).toBe(true);
  const closed = elector.close();
  await settled();
  await seat.released();
  await closed;
  expect(await ended).toBe("resigned");
  expect(elector.gate.isLeader).toBe(false);
}

describe("an onTransition that", () => {
  it.each(CALLBACK_DEEDS)("%s changes nothing about the term", async (_, deed) => {
    const kinds: string[] = [];
    const stage = staged((self) => ({
      onTransition: ({ kind }) => {
        kinds.push(kind);
        return deed(self()) as void;
      },
    }));
    await oneTerm(stage);
    expect(kinds).toEqual(["campaigning", "leading", "ended"]);
  });

  it.each([...THROWS, ...REJECTS])("%s is in the log", async (_, deed) => {
    const stage = staged((self) => ({ onTransition: () => deed(self()) as void }));
    await oneTerm(stage);
    expect(stage.logged).toContain("error onTransition failed; leadership is not affected");
  });

  it(`${CLOSES[0]} ends the term as any close does`, async () => {
    const stage = staged((self) => ({
      onTransition: ({ kind }) => {
        if (kind === "leading") CLOSES[1](self());
      },
    }));
    const term = stage.elector.acquire();
    await stage.seat.grant(7);
    await stage.seat.released();
    await stage.elector.close();
    const ended = await term.then(({ ended: reason }) => reason).catch((error: { code: string }) => error.code);
    expect(["resigned", "ELECTOR_CLOSED"]).toContain(ended);
  });
});

describe("a logger that", () => {
  it.each(CALLBACK_DEEDS)("%s changes nothing about the term", async (_, deed) => {
    let calls = 0;
    const say = (self: () => Rig) => () => {
      // Not from within the constructor, which logs nothing.
      calls++;
      return deed(self()) as void;
    };
    const stage = staged((self) => ({ logger: { info: say(self), warn: say(self), error: say(self) } }));
    await oneTerm(stage);
    expect(calls).toBeGreaterThan(0);
  });

  it("has no methods at all, or ones that can't be read, changes nothing either", async () => {
    for (const logger of [{}, HOSTILE["a proxy that refuses everything"]?.()]) {
      await oneTerm(rig({ logger: logger as never }));
    }
  });
});

const ON_ERROR = [undefined, "retry"] as const;

describe.each(ON_ERROR)("a work, with onError %s, that", (onError) => {
  it.each([...THROWS, ...REJECTS])("%s ends lead with just that, and the scope is free", async (_, deed) => {
    const stage = rig();
    const { elector, seat } = stage;
    const outcome = elector
      .lead(() => deed(stage), { onError })
      .then(
        () => "returned",
        () => "threw",
      );
    await seat.grant(7);
    await seat.released();
    expect(await outcome).toBe("threw");
    expect(stage.story()).toEqual(["campaigning", "leading", "ended resigned"]);
    await elector.close();
  });

  it.each(RETURNS)("%s ends lead, and the scope is free", async (_, deed) => {
    const stage = rig();
    // As an async function's: what it returns is looked at by the promise itself.
    const outcome = stage.elector
      .lead(() => deed(stage), { onError })
      .then(
        () => "ended",
        () => "ended",
      );
    await stage.seat.grant(7);
    await stage.seat.released();
    expect(await outcome).toBe("ended");
    await stage.elector.close();
  });

  it("never settles keeps nobody from closing: lead rejects with TERM_OVERRUN", async () => {
    const stage = rig();
    const led = stage.elector.lead(() => NEVER[1](stage), { drainMs: 1_000, onError }).catch((error: unknown) => error);
    await stage.seat.grant(7);
    const closed = stage.elector.close();
    await stage.clock.advance(1_000);
    await stage.seat.released();
    expect(await led).toMatchObject({ code: "TERM_OVERRUN" });
    await closed;
  });

  it("blocks the thread for longer than it is trusted finds the gate closed, and the term goes on when that is known", async () => {
    const stage = rig();
    let isLeader: boolean | undefined;
    const led = stage.elector.lead(() => {
      stage.clock.stop(5_000);
      ({ isLeader } = stage.elector.gate);
    });
    await stage.seat.grant(7);
    await stage.seat.released();
    await led;
    expect(isLeader).toBe(false);
    await stage.elector.close();
  });

  it("closes its own elector ends by that", async () => {
    const stage = rig();
    const led = stage.elector
      .lead(async () => await stage.elector.close(), { drainMs: 1_000, onError })
      .catch((error: { code: string }) => error.code);
    await stage.seat.grant(7);
    await stage.clock.advance(1_000);
    await stage.seat.released();
    expect(["ELECTOR_CLOSED", "TERM_OVERRUN"]).toContain(await led);
    await stage.elector.close();
  });
});

describe("a metrics registry that", () => {
  it.each(THROWS)("%s is heard by whoever registers, and the elector goes on", async (_, deed) => {
    const stage = rig();
    const registerMetric = (): void => void deed(stage);
    expect(() => {
      try {
        register({ registerMetric }, [stage.elector]);
      } catch {
        throw new Error("heard");
      }
    }).toThrow("heard");
    await oneTerm(stage);
  });
});
