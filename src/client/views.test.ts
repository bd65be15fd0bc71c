import { describe, expectTypeOf, it } from "vitest";
import type { Static } from "typebox";
import type * as answers from "../contract/answers.ts";
import type { Camel } from "../contract/snake-case.ts";
import type * as views from "./views.ts";

type Frozen<T> = T extends readonly (infer One)[]
  ? readonly Frozen<One>[]
  : T extends object
    ? { readonly [Name in keyof T]: Frozen<T[Name]> }
    : T;
type Wire<Name extends keyof typeof answers> = Frozen<Camel<Static<(typeof answers)[Name]>>>;

describe("what the SDK shows", () => {
  it("is what the contract says, in the SDK's spelling", () => {
    expectTypeOf<Wire<"ClusterAnswer">>().toExtend<views.ClusterView>();
    expectTypeOf<views.ClusterView["members"]>().toExtend<Wire<"ClusterAnswer">["members"]>();
    expectTypeOf<keyof views.ClusterView>().toEqualTypeOf<keyof Wire<"ClusterAnswer">>();
    expectTypeOf<Frozen<views.TransferView>>().toEqualTypeOf<Wire<"TransferAnswer">>();
    expectTypeOf<Wire<"MembersAnswer">>().toExtend<views.MemberChangeView>();
    expectTypeOf<views.MemberChangeView>().toExtend<Wire<"MembersAnswer">>();
    expectTypeOf<views.SnapshotView>().toEqualTypeOf<Wire<"SnapshotAnswer">>();
    expectTypeOf<Wire<"AcquireAnswer">>().toExtend<views.ScopeGrant>();
    expectTypeOf<views.ScopeRenewal>().toEqualTypeOf<Wire<"RenewAnswer">>();
    expectTypeOf<Wire<"ScopeAnswer">>().toExtend<views.ScopeView>();
    expectTypeOf<views.ScopeView>().toExtend<Wire<"ScopeAnswer">>();
    expectTypeOf<Wire<"HistoryAnswer">["transitions"]>().toExtend<readonly views.ScopeTransitionView[]>();
    expectTypeOf<views.AuditView>().toEqualTypeOf<Wire<"AuditAnswer">>();
  });
});
