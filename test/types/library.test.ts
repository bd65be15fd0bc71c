// The library's face as the compiler sees it: see terms.test.ts for how this file is checked.

import { describe, expectTypeOf, it } from "vitest";
import {
  createElector,
  type Elector,
  type ElectorOptions,
  type ErrorCode,
  type Leader,
  type LeadOptions,
  NotLeaderError,
  type NotLeaderReason,
  StaleEpochError,
  TenureError,
} from "../../src/entry/index.ts";
import type { EtcdOptions } from "../../src/entry/etcd.ts";
import type { PostgresOptions } from "../../src/entry/postgres.ts";
import { register } from "../../src/entry/prometheus.ts";
import { type electorConformance, testBackend, type TestBackendOptions } from "../../src/entry/testing.ts";

/** The names of optional properties that can't be given as undefined (exactOptionalPropertyTypes). */
type Strict<T> = {
  [K in keyof T]-?: {} extends Pick<T, K> ? (Record<K, undefined> extends Pick<T, K> ? never : K) : never;
}[keyof T];
interface Sloppy {
  readonly fine?: number | undefined;
  readonly wrong?: number;
}

declare const elector: Elector;

describe("options", () => {
  it("may be given as undefined, each of them", () => {
    expectTypeOf<Strict<ElectorOptions>>().toEqualTypeOf<never>();
    expectTypeOf<Strict<LeadOptions>>().toEqualTypeOf<never>();
    expectTypeOf<Strict<PostgresOptions<never>>>().toEqualTypeOf<never>();
    expectTypeOf<Strict<EtcdOptions>>().toEqualTypeOf<never>();
    expectTypeOf<Strict<TestBackendOptions>>().toEqualTypeOf<never>();
  });

  it("would be caught otherwise", () => {
    expectTypeOf<Strict<Sloppy>>().toEqualTypeOf<"wrong">();
  });

  it("are refused when they are misspelt or of the wrong type", () => {
    void (() => {
      // @ts-expect-error: a backend is needed.
      createElector({ scope: "s" });
      // @ts-expect-error: there is no such option.
      createElector({ scope: "s", backend: testBackend(), ttl: 5 });
      // @ts-expect-error: metadata are texts.
      createElector({ scope: "s", backend: testBackend(), metadata: { port: 80 } });
      // @ts-expect-error: one of two words.
      void elector.lead(() => 1, { onLost: "ignore" });
    });
  });
});

describe("lead", () => {
  it("resolves to what work returns, whether that is a promise or not", () => {
    const promised = () => elector.lead(async ({ epoch }) => ({ epoch }));
    const plain = () => elector.lead(() => "done" as const);
    expectTypeOf<ReturnType<typeof promised>>().toEqualTypeOf<Promise<{ epoch: number }>>();
    expectTypeOf<ReturnType<typeof plain>>().toEqualTypeOf<Promise<"done">>();
  });
});

describe("gate and observers", () => {
  it("speak in plain values", () => {
    expectTypeOf<Elector["gate"]["requireLeader"]>().returns.toEqualTypeOf<number>();
    expectTypeOf<Elector["gate"]["isLeader"]>().toEqualTypeOf<boolean>();
    expectTypeOf<Elector["observe"]>().returns.toEqualTypeOf<AsyncIterable<Leader | null>>();
    expectTypeOf<Parameters<Elector["gate"]["ensureEpoch"]>[0]>().toEqualTypeOf<number>();
  });

  it("can't be changed", () => {
    void (() => {
      // @ts-expect-error: who leads is not decided by assignment.
      elector.gate.isLeader = true;
    });
  });
});

describe("errors", () => {
  it("narrow by their `is`", () => {
    void ((error: unknown) => {
      if (NotLeaderError.is(error)) {
        expectTypeOf(error.reason).toEqualTypeOf<NotLeaderReason>();
        expectTypeOf(error.leader).toEqualTypeOf<{ readonly epoch: number; readonly identity: string } | null>();
      } else if (StaleEpochError.is(error)) {
        expectTypeOf(error.epoch).toEqualTypeOf<number>();
      } else if (TenureError.is(error)) {
        expectTypeOf(error.code).toEqualTypeOf<ErrorCode>();
        // @ts-expect-error: not every error has an epoch.
        void error.epoch;
      }
    });
  });
});

describe("the rest of the face", () => {
  it("takes electors of every kind for metrics, and cases for any runner", () => {
    void (() => register({ registerMetric: (metric: { name: string }) => void metric.name }, new Set([elector])));
    expectTypeOf<ReturnType<typeof electorConformance>[number]["name"]>().toEqualTypeOf<string>();
  });
});
