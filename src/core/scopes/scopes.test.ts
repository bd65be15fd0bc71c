import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SCOPE_HISTORY_MAX } from "../kit/limits.ts";
import {
  decide,
  decodeEvent,
  encodeEvent,
  epochAt,
  EPOCHS_PER_GENERATION,
  GENERATION_MAX,
  type ScopeCommand,
  type ScopeEvent,
  ScopesFold,
  ScopesHead,
  withNewScopesLine as withNewLine,
} from "./index.ts";

const NO_LOCKS = { lockedBy: () => null, reserved: { scopes: 0 } };
const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 }).filter((one) => !one.includes("\0"));
const scope = fc.constantFrom("s1", "s2", "s3", "s4");
const atMs = fc.integer({ min: 0, max: 2 ** 41 });

const granted: fc.Arbitrary<ScopeEvent> = fc.record({
  kind: fc.constant("granted" as const),
  scope: fc.oneof(scope, text),
  session: text,
  identity: text,
  metadata: fc.dictionary(text, text, { maxKeys: 4 }),
  ttlMs: fc.integer({ min: 1_000, max: 600_000 }),
  atMs,
});
const changed: fc.Arbitrary<ScopeEvent> = fc.record({
  kind: fc.constantFrom("resigned" as const, "expired" as const, "forced" as const, "resign-requested" as const),
  scope,
  epoch: fc.maxSafeNat(),
  atMs,
});

const command: fc.Arbitrary<ScopeCommand> = fc.oneof(
  fc.record({
    kind: fc.constant("acquire" as const),
    scope,
    session: fc.constantFrom("a", "b"),
    identity: text,
    metadata: fc.constant({}),
    ttlMs: fc.constant(1_000),
    atMs,
  }),
  fc.record({
    kind: fc.constant("resign" as const),
    scope,
    session: fc.constantFrom("a", "b"),
    epoch: fc.integer({ min: 1, max: 12 }),
    atMs,
  }),
  fc.record({ kind: fc.constant("expire" as const), scope, epoch: fc.integer({ min: 1, max: 12 }), atMs }),
  fc.record({ kind: fc.constantFrom("force" as const, "request-resign" as const), scope, atMs }),
);

/** As the record of this event at this position is applied. */
function apply(fold: ScopesFold, position: number, event: ScopeEvent): void {
  const epoch = epochAt(fold.epochBase, position);
  if (!fold.fits(event, epoch)) throw new Error(`${event.kind} does not fit`);
  fold.evolve(event, epoch);
}

/** Decides one after the other, and appends what is decided. */
function play(commands: readonly ScopeCommand[], fold = new ScopesFold(), from = 0): ScopeEvent[] {
  const events: ScopeEvent[] = [];
  for (const one of commands) {
    const position = from + events.length + 1;
    const decision = decide(fold, one, { position, locks: NO_LOCKS });
    if (decision.kind !== "event") continue;
    apply(fold, position, decision.event);
    events.push(decision.event);
  }
  return events;
}

function acquire(name: string, session = "a"): ScopeCommand {
  return { kind: "acquire", scope: name, session, identity: session, metadata: {}, ttlMs: 1_000, atMs: 5 };
}

describe("events", () => {
  it("are read as they were written, and one event has one encoding", () => {
    fc.assert(
      fc.property(fc.oneof(granted, changed), (event) => {
        const bytes = encodeEvent(event);
        expect(decodeEvent(bytes)).toEqual(event);
        expect(encodeEvent(decodeEvent(bytes) as ScopeEvent)).toEqual(bytes);
      }),
    );
  });

  it("do not depend on the order in which metadata was given", () => {
    const event = { kind: "granted", scope: "s", session: "a", identity: "i", ttlMs: 1_000, atMs: 1 } as const;
    const one = encodeEvent({ ...event, metadata: { a: "1", b: "2" } });
    expect(encodeEvent({ ...event, metadata: { b: "2", a: "1" } })).toEqual(one);
  });

  it("trap 63: metadata may be called __proto__, and is only data", () => {
    const metadata = JSON.parse('{"__proto__":"x"}') as Record<string, string>;
    const bytes = encodeEvent({
      kind: "granted",
      scope: "s",
      session: "a",
      identity: "i",
      ttlMs: 1_000,
      atMs: 1,
      metadata,
    });
    const read = decodeEvent(bytes);
    expect(read.kind === "granted" && Object.entries(read.metadata)).toEqual([["__proto__", "x"]]);
  });

  it("cut short, made longer or made up are malformed, never an exception", () => {
    fc.assert(
      fc.property(fc.oneof(granted, changed), fc.nat(), fc.uint8Array(), (event, at, noise) => {
        const bytes = encodeEvent(event);
        expect(decodeEvent(bytes.subarray(0, at % bytes.length)).kind).toBe("malformed");
        expect(decodeEvent(Uint8Array.of(...bytes, 0)).kind).toBe("malformed");
        decodeEvent(noise);
      }),
    );
  });

  it("keep their form: bytes of version 1, for ever", () => {
    const bytes = encodeEvent({ kind: "expired", scope: "s", epoch: 258, atMs: 3 });
    expect([...bytes]).toEqual([0x53, 1, 2, 0, 0, 0, 1, 0x73, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 1, 2]);
  });
});

describe("the fold", () => {
  it("whatever is commanded, one holds at a time, epochs grow, and every event that was decided fits", () => {
    fc.assert(
      fc.property(fc.array(command, { maxLength: 60 }), (commands) => {
        const fold = new ScopesFold();
        const events = play(commands, fold);
        const holders = new Map<string, string>();
        const last = new Map<string, number>();
        for (const [at, event] of events.entries()) {
          if (event.kind === "granted") {
            expect(holders.has(event.scope)).toBe(false);
            expect(at + 1).toBeGreaterThan(last.get(event.scope) ?? 0);
            holders.set(event.scope, event.session);
            last.set(event.scope, at + 1);
          } else if (event.kind !== "resign-requested") holders.delete(event.scope);
        }
        for (const name of ["s1", "s2", "s3", "s4"]) {
          expect(fold.get(name)?.hold?.session).toBe(holders.get(name));
          expect(fold.get(name)?.epoch).toBe(last.get(name));
        }
        expect(fold.held).toBe(holders.size);
      }),
    );
  });

  it("restored from a snapshot is the same, and stays the same", () => {
    const commands = fc.array(command, { maxLength: 40 });
    fc.assert(
      fc.property(commands, commands, (before, after) => {
        const fold = new ScopesFold(3);
        const count = play(before, fold).length;
        const restored = new ScopesFold(3);
        restored.restore(fold.snapshot());
        expect(restored.list(null, 99)).toEqual(fold.list(null, 99));
        expect(restored.snapshot()).toEqual(fold.snapshot());
        expect(play(after, restored, count)).toEqual(play(after, fold, count));
        expect(restored.snapshot()).toEqual(fold.snapshot());
      }),
    );
  });

  it("is listed in pages by name: together they are all of it, whatever came and went", () => {
    fc.assert(
      fc.property(fc.array(command, { maxLength: 40 }), fc.integer({ min: 1, max: 4 }), (commands, limit) => {
        const fold = new ScopesFold(3);
        play(commands, fold);
        const found: string[] = [];
        for (let page = fold.list(null, limit); page.length > 0; page = fold.list(found.at(-1)!, limit)) {
          expect(page.length).toBeLessThanOrEqual(limit);
          found.push(...page.map(({ scope }) => scope));
        }
        expect(found).toEqual([...fold.all()].map(({ scope }) => scope).toSorted());
      }),
    );
  });

  it("takes no event that does not fit", () => {
    const fold = new ScopesFold();
    expect(fold.fits({ kind: "expired", scope: "s", epoch: 9, atMs: 1 }, 1)).toBe(false);
    play([acquire("s1")], fold);
    expect(fold.fits({ ...acquire("s1", "b"), kind: "granted" } as ScopeEvent, 2)).toBe(false);
  });

  it("forgets the scope that has been free longest where a new one needs its place, and never one that is held", () => {
    const fold = new ScopesFold(3);
    play([acquire("s1"), acquire("s2"), acquire("s3")], fold);
    expect(decide(fold, acquire("s4"), { position: 4, locks: NO_LOCKS })).toEqual({ kind: "full" });
    play([{ kind: "force", scope: "s2", atMs: 1 }, { kind: "force", scope: "s1", atMs: 1 }, acquire("s4")], fold, 3);
    expect(fold.list(null, 99).map((state) => state.scope)).toEqual(["s1", "s3", "s4"]);
  });

  it("keeps the newest transitions of a scope, and how long each hold lasted", () => {
    const fold = new ScopesFold();
    const turns = Array.from({ length: SCOPE_HISTORY_MAX }, (_, at): ScopeCommand[] => [
      { ...acquire("s1"), atMs: at * 100 },
      { kind: "force", scope: "s1", atMs: at * 100 + 7 },
    ]).flat();
    play(turns, fold);
    const { history } = fold.get("s1")!;
    expect(history).toHaveLength(SCOPE_HISTORY_MAX);
    expect(history[0]).toEqual({ atMs: 3_107, epoch: 63, identity: "a", reason: "forced", heldMs: 7 });
    expect(history[1]).toMatchObject({ reason: "acquired", heldMs: null });
  });

  it("a hold that ends by a clock that is behind lasted no negative time", () => {
    const fold = new ScopesFold();
    play([acquire("s1"), { kind: "force", scope: "s1", atMs: 1 }], fold);
    expect(fold.get("s1")?.history[0]?.heldMs).toBe(0);
  });
});

describe("a new line of epochs", () => {
  const line = { generation: 0, place: 0, position: 0, session: "nobody" };
  const nextEpoch = (snapshot: Uint8Array, position: number): number => {
    const fold = new ScopesFold();
    fold.restore(snapshot);
    return fold.epochBase + position + 1;
  };

  it("a restored cluster hands out no epoch again, also where its clock knows nothing", () => {
    const fold = new ScopesFold();
    play([acquire("s1")], fold);
    const backup = fold.snapshot();
    // After the backup, before the disaster.
    play([{ kind: "force", scope: "s1", atMs: 1 }, acquire("s1", "b")], fold, 1);
    const restored = new ScopesFold();
    restored.restore(withNewLine(backup, { ...line, position: 1, place: 7 }));
    play([{ kind: "force", scope: "s1", atMs: 1 }, acquire("s1", "c")], restored, 1);
    expect(fold.get("s1")?.epoch).toBe(3);
    expect(restored.get("s1")?.epoch).toBe(2 * EPOCHS_PER_GENERATION + 7 + 2);
    expect(withNewLine(restored.snapshot(), { ...line, position: 3 })).not.toEqual(restored.snapshot());
  });

  it("nobody can renew or resign what was held before, and it is held until its lease is over", () => {
    const fold = new ScopesFold();
    play([acquire("s1")], fold);
    const restored = new ScopesFold();
    restored.restore(withNewLine(fold.snapshot(), { ...line, position: 1 }));
    const hold = restored.get("s1")!.hold!;
    expect(hold).toMatchObject({ session: "nobody", identity: "a", epoch: 1, ttlMs: 1_000 });
    const resign: ScopeCommand = { kind: "resign", scope: "s1", session: "a", epoch: 1, atMs: 1 };
    expect(decide(restored, resign, { position: 2, locks: NO_LOCKS })).toEqual({ kind: "stale" });
    expect(decide(restored, acquire("s1"), { position: 2, locks: NO_LOCKS })).toEqual({ kind: "held", hold });
    expect(play([{ kind: "expire", scope: "s1", epoch: 1, atMs: 1 }, acquire("s1")], restored, 1)).toHaveLength(2);
    expect(restored.get("s1")!.epoch).toBeGreaterThan(2 * EPOCHS_PER_GENERATION);
  });

  it("two that are made of one state, or of two states of one cluster, share no epoch where they begin at two places", () => {
    const [older, newer] = [new ScopesFold(), new ScopesFold()];
    play([acquire("s1")], older);
    play([acquire("s1"), acquire("s2"), acquire("s3")], newer);
    const first = withNewLine(newer.snapshot(), { ...line, generation: 9, place: 100, position: 3 });
    const second = withNewLine(older.snapshot(), { ...line, generation: 9, place: 200, position: 1 });
    expect(nextEpoch(second, 1) - nextEpoch(first, 3)).toBe(100);
  });

  it("goes up nine times in a row, whatever the clock says, and each is above all that the one before could grant", () => {
    let snapshot: Uint8Array = new Uint8Array(0);
    let highest = 0;
    for (let time = 0; time < 9; time++) {
      snapshot = withNewLine(snapshot, { ...line, generation: 5, place: 3, position: time });
      const next = nextEpoch(snapshot, time);
      expect(next).toBeGreaterThan(highest);
      highest = next + EPOCHS_PER_GENERATION - 1;
    }
  });

  it("a clock that is decades ahead is refused: an epoch never passes 2^53-1", () => {
    const wrong = { ...line, generation: GENERATION_MAX };
    expect(() => withNewLine(new Uint8Array(0), wrong)).toThrow(/clock/);
    expect(GENERATION_MAX * EPOCHS_PER_GENERATION + EPOCHS_PER_GENERATION - 1).toBe(Number.MAX_SAFE_INTEGER);
  });

  it("where there is none, a snapshot has the bytes that older releases read", () => {
    const fold = new ScopesFold();
    play([acquire("s1")], fold);
    expect(fold.snapshot()[1]).toBe(1);
    const first = withNewLine(fold.snapshot(), { ...line, place: 1, position: 1 });
    fold.restore(first);
    expect([first[1], fold.snapshot()]).toEqual([1, first]);
    const second = withNewLine(fold.snapshot(), { ...line, place: 5, position: 1 });
    fold.restore(second);
    expect([second[1], fold.snapshot()]).toEqual([2, second]);
  });

  it("a snapshot that can't be read is refused with a reason", () => {
    const snapshot = withNewLine(new Uint8Array(0), line).slice();
    expect(() => withNewLine(snapshot.subarray(0, 7), line)).toThrow(
      expect.objectContaining({ code: "SNAPSHOT_INVALID" }),
    );
    snapshot[1] = 3;
    expect(() => withNewLine(snapshot, line)).toThrow(expect.objectContaining({ code: "FORMAT_UNSUPPORTED" }));
  });
});

describe("the head", () => {
  const event = (name: string): ScopeEvent => ({ ...acquire(name), kind: "granted" }) as ScopeEvent;

  it("shows what is appended until it is applied, and what it rests on", () => {
    const fold = new ScopesFold();
    const head = new ScopesHead<string>(fold);
    head.push(event("s1"), 1, "first");
    head.push({ kind: "resigned", scope: "s1", epoch: 1, atMs: 1 }, 2, "second");
    expect(head.get("s1")?.hold).toBeNull();
    expect(head.underWay("s1")).toBe("second");
    apply(fold, 1, event("s1"));
    head.applied("s1", 1);
    expect(head.underWay("s1")).toBe("second");
    head.applied("s1", 2);
    expect(head.underWay("s1")).toBeNull();
    expect(head.get("s1")?.hold?.epoch).toBe(1);
  });

  it("counts places with what is under way", () => {
    const fold = new ScopesFold(2);
    play([acquire("s1")], fold);
    const head = new ScopesHead<string>(fold);
    head.push({ kind: "resign-requested", scope: "s1", epoch: 1, atMs: 1 }, 2, "asked");
    expect(head.room > 0).toBe(true);
    head.push(event("s2"), 3, "granted");
    expect(head.room > 0).toBe(false);
    head.push({ kind: "forced", scope: "s1", epoch: 1, atMs: 1 }, 4, "forced");
    expect(head.room > 0).toBe(true);
    head.clear();
    expect(head.get("s2")).toBeUndefined();
  });

  it("counts them as one who looks at every scope would, whatever is appended, applied and given up", () => {
    const step = fc.oneof(command, fc.constantFrom("apply" as const, "give up" as const));
    const run = (steps: readonly (ScopeCommand | "apply" | "give up")[]): void => {
      const fold = new ScopesFold(2);
      const head = new ScopesHead<null>(fold);
      const underWay: ScopeEvent[] = [];
      let position = 0;
      for (const one of steps) {
        if (one === "give up") {
          head.clear();
          underWay.length = 0;
        } else if (one === "apply") {
          const event = underWay.shift();
          if (event === undefined) continue;
          apply(fold, ++position, event);
          head.applied(event.scope, position);
        } else {
          const at = position + underWay.length + 1;
          const decision = decide(head, one, { position: at, locks: NO_LOCKS });
          if (decision.kind !== "event") continue;
          head.push(decision.event, at, null);
          underWay.push(decision.event);
        }
        const held = ["s1", "s2", "s3", "s4"].filter((name) => (head.get(name)?.hold ?? null) !== null).length;
        expect(head.room).toBe(2 - held);
      }
    };
    fc.assert(fc.property(fc.array(step, { maxLength: 40 }), run));
  });

  it("looks at as many scopes for a decision where a thousand are under way as where none is", () => {
    const fold = new ScopesFold(1_000);
    const head = new ScopesHead<null>(fold);
    for (let at = 1; at <= 1_000; at++) head.push(event(`s${at}`), at, null);
    let looks = 0;
    const get = fold.get.bind(fold);
    fold.get = (name) => {
      looks++;
      return get(name);
    };
    expect(decide(head, acquire("one-more"), { position: 1_001, locks: NO_LOCKS }).kind).toBe("full");
    expect(looks).toBeLessThan(5);
  });
});
