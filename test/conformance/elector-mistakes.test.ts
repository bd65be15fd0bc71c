// The suite can fail: electors with one mistake each, on the backend in memory, and the case that must notice it.

import { describe, expect, it } from "vitest";
import { conformanceCases } from "../../src/electors/conformance/index.ts";
import { createElector, type Elector, type LeadOptions, type Term, type Transition } from "../../src/entry/index.ts";
import { memoryWorld } from "./test-worlds.ts";

type Create = Parameters<typeof conformanceCases>[1]["createElector"];
type Options = Parameters<Create>[0];
type Work<R> = (term: Term) => Promise<R> | R;

interface Mistake {
  readonly name: string;
  readonly found: readonly string[];
  readonly create: Create;
}

/** Replaces members of every elector. */
function electors(change: (elector: Elector, options: Options) => object): Create {
  return (options) => {
    const elector = createElector(options);
    const changed = change(elector, options);
    return new Proxy(elector, {
      get: (target, key) => {
        const member: unknown = Reflect.get(changed, key) ?? Reflect.get(target, key, target);
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
  };
}

const ENDS_FIRST = "lead: the term ends first: the signal aborts once, the outcome is dropped, and it campaigns again";

const MISTAKES: readonly Mistake[] = [
  {
    name: "lead as it is often written: acquire, work, resign",
    found: [
      ENDS_FIRST,
      "lead: an error that work throws after its term has ended is dropped",
      'lead: onLost "throw" rejects when the term is lost',
      "lead: no new campaign before the previous work has settled",
      "lead: work that outlives its term by drainMs rejects with TERM_OVERRUN",
    ],
    create: electors((elector) => ({
      lead: async <R>(work: Work<R>, { signal }: LeadOptions = {}) => {
        await using term = await elector.acquire({ signal });
        return await work(term);
      },
    })),
  },
  {
    name: "lead that never resigns",
    found: ["lead: work returns while its term holds: resign, resolve", "lead: work throws: resign, reject"],
    create: electors((elector) => ({
      lead: async <R>(work: Work<R>) => work(await elector.acquire()),
    })),
  },
  {
    name: "lead that knows no onLost",
    found: ['lead: onLost "throw" rejects when the term is lost'],
    create: electors((elector) => ({
      lead: <R>(work: Work<R>, { signal, drainMs }: LeadOptions = {}) => elector.lead(work, { signal, drainMs }),
    })),
  },
  {
    name: "lead that waits for ever for work to settle",
    found: ["lead: work that outlives its term by drainMs rejects with TERM_OVERRUN"],
    create: electors((elector) => ({
      lead: <R>(work: Work<R>, options: LeadOptions = {}) => elector.lead(work, { ...options, drainMs: 1e9 }),
    })),
  },
  {
    name: "lead that takes work for settled as soon as its signal has aborted",
    found: [
      "lead: no new campaign before the previous work has settled",
      "lead: work that outlives its term by drainMs rejects with TERM_OVERRUN",
      "lead: an abort while it leads aborts the term's signal once, drains, and lets go",
      "lead: close while it leads winds up as an abort does",
    ],
    create: electors((elector) => ({
      lead: <R>(work: Work<R>, options: LeadOptions = {}) =>
        elector.lead((term) => {
          const aborted = Promise.withResolvers<never>();
          // Where work throws at once, nobody races with this.
          aborted.promise.catch(() => undefined);
          term.signal.addEventListener("abort", () => aborted.reject(new Error("aborted")));
          return Promise.race([work(term), aborted.promise]);
        }, options),
    })),
  },
  {
    name: "a gate that remembers whether it leads (trap 34)",
    found: [
      "a leader frozen longer than the server timeout can't act when it thaws",
      "the gate closes and opens again inside a term, with the same epoch and without an abort",
    ],
    create: (options) => {
      let leads = false;
      const elector = createElector({
        ...options,
        onTransition: (transition: Transition) => {
          leads = transition.kind === "leading" || transition.kind === "resumed";
          options.onTransition?.(transition);
        },
      });
      const gate = new Proxy(elector.gate, {
        get: (target, key) => {
          if (key === "isLeader") return leads;
          const member: unknown = Reflect.get(target, key, target);
          return typeof member === "function" ? member.bind(target) : member;
        },
      });
      return new Proxy(elector, {
        get: (target, key) => {
          if (key === "gate") return gate;
          const member: unknown = Reflect.get(target, key, target);
          return typeof member === "function" ? member.bind(target) : member;
        },
      });
    },
  },
  {
    name: "an elector that takes a closed gate for the end of the term",
    found: ["the gate closes and opens again inside a term, with the same epoch and without an abort"],
    create: (options) => {
      const elector: Elector = createElector({
        ...options,
        onTransition: (transition) => {
          options.onTransition?.(transition);
          if (transition.kind === "suspended") void elector.close();
        },
      });
      return elector;
    },
  },
  {
    name: "an elector that loses transitions",
    found: ["the gate closes and opens again inside a term, with the same epoch and without an abort"],
    create: (options) =>
      createElector({
        ...options,
        onTransition: (transition) => transition.kind !== "suspended" && options.onTransition?.(transition),
      }),
  },
  {
    name: "an elector that does not tell how a term ends",
    found: ["transitions are told in order, and none is dropped", "epochs grow from term to term, whoever leads"],
    create: (options) =>
      createElector({
        ...options,
        onTransition: (transition) => transition.kind !== "ended" && options.onTransition?.(transition),
      }),
  },
  {
    name: "an elector whose resign may be overtaken by itself, where waiting is polling",
    found: ["resign lets another go first", "lead: after it has returned another goes first"],
    create: (options) => {
      const { backend } = options;
      return createElector({
        ...options,
        backend: {
          ...backend,
          timing: { ...backend.timing, holdBackMs: 0 },
          seat: (claim) => {
            const seat = backend.seat(claim);
            const acquire = async (signal: AbortSignal): ReturnType<typeof seat.acquire> => {
              const { clock } = claim;
              while ((await seat.leader()) !== null) {
                await new Promise<void>((resolve) => void clock.setTimer(clock.monotonicMs() + 300, resolve));
              }
              return seat.acquire(signal);
            };
            return new Proxy(seat, {
              get: (target, key) => {
                if (key === "acquire") return acquire;
                const member: unknown = Reflect.get(target, key, target);
                return typeof member === "function" ? member.bind(target) : member;
              },
            });
          },
        },
      });
    },
  },
  {
    name: "a disabled elector that leads all the same",
    found: ["a disabled elector never leads, and observes"],
    create: (options) => createElector({ ...options, enabled: true }),
  },
  {
    name: "an elector that can be closed once only",
    found: ["close is safe twice, and frees what was held"],
    create: electors((elector) => {
      let closed = false;
      return {
        close: () => {
          if (closed) return Promise.reject(new Error("closed already"));
          closed = true;
          return elector.close();
        },
      };
    }),
  },
];

describe("a mistake is found by the case that is about it", () => {
  for (const { name, found, create } of MISTAKES) {
    it(name, async () => {
      const cases = conformanceCases(() => memoryWorld(), {
        createElector: create,
        realNowMs: () => performance.now(),
        realSleep: () => Promise.resolve(),
      });
      const failed: string[] = [];
      for (const one of cases) await one.run().catch(() => failed.push(one.name));
      for (const one of found) {
        expect(
          cases.map((known) => known.name),
          "a case was renamed",
        ).toContain(one);
        expect(failed, `nothing was found by: ${one}`).toContain(one);
      }
    });
  }
});
