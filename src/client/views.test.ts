import { describe, expectTypeOf, it } from "vitest";
import type { Static, TSchema } from "typebox";
import type * as answers from "../contract/answers.ts";
import type * as jobAnswers from "../contract/jobs/answers.ts";
import type * as jobRequests from "../contract/jobs/requests.ts";
import type { Camel, Snake } from "../contract/snake-case.ts";
import type * as txnSchemas from "../contract/txn/schemas.ts";
import type { ClientBody } from "../core/txn/wire-calls.ts";
import type { OperationBody } from "../core/txn/wire-operations.ts";
import type * as jobs from "./job-views.ts";
import type * as txn from "./transactions/views.ts";
import type * as views from "./views.ts";
import type * as work from "./work.ts";

type Frozen<T> = T extends readonly (infer One)[]
  ? readonly Frozen<One>[]
  : T extends object
    ? { readonly [Name in keyof T]: Frozen<T[Name]> }
    : T;
type Wire<Name extends keyof typeof answers> = Frozen<Camel<Static<(typeof answers)[Name]>>>;
type TxnWire<Name extends keyof typeof txnSchemas> = Frozen<Camel<Static<Extract<(typeof txnSchemas)[Name], TSchema>>>>;
type Dashed<State extends string> = State extends "rolled_back" ? "rolled-back" : State;
type JobWire<Name extends keyof typeof jobAnswers> = Frozen<Camel<Static<(typeof jobAnswers)[Name]>>>;
/** Of a standalone site, or with `line=own`. */
type OwnSince = Exclude<JobWire<"SinceAnswer">, { readonly logId: unknown }>;

describe("what the SDK shows", () => {
  it("is what the contract says, in the SDK's spelling", () => {
    expectTypeOf<Wire<"ClusterAnswer">>().toExtend<views.ClusterView>();
    expectTypeOf<keyof views.MemberView>().toEqualTypeOf<keyof Wire<"ClusterAnswer">["members"][number]>();
    expectTypeOf<keyof views.ClusterView>().toEqualTypeOf<keyof Wire<"ClusterAnswer">>();
    expectTypeOf<Frozen<views.TransferView>>().toEqualTypeOf<Wire<"TransferAnswer">>();
    expectTypeOf<Wire<"MembersAnswer">>().toExtend<views.MemberChangeView>();
    expectTypeOf<keyof views.MemberChangeView>().toEqualTypeOf<keyof Wire<"MembersAnswer">>();
    expectTypeOf<Wire<"SavedSnapshotAnswer">>().toExtend<views.SavedSnapshotView>();
    expectTypeOf<keyof views.SavedSnapshotView>().toEqualTypeOf<keyof Wire<"SavedSnapshotAnswer">>();
    expectTypeOf<views.StoredSnapshotView>().toEqualTypeOf<Wire<"StoredSnapshotAnswer">>();
    expectTypeOf<Wire<"AcquireAnswer">>().toExtend<views.ScopeGrant>();
    expectTypeOf<views.ScopeRenewal>().toEqualTypeOf<Wire<"RenewAnswer">>();
    expectTypeOf<Wire<"ScopeAnswer">>().toExtend<views.ScopeView>();
    expectTypeOf<views.ScopeView>().toExtend<Wire<"ScopeAnswer">>();
    expectTypeOf<Wire<"HistoryAnswer">["transitions"]>().toExtend<readonly views.ScopeTransitionView[]>();
    expectTypeOf<views.AuditView>().toEqualTypeOf<Wire<"AuditAnswer">>();
  });

  it("of transactions too; states have a hyphen, and a transaction has an id", () => {
    type Shown = TxnWire<"TxnShownAnswer">;
    type Renamed = "id" | "state" | "isSettled" | "isInDoubt";
    expectTypeOf<Omit<Shown, "txnId" | "state" | "settled" | "inDoubt" | "reason" | "results">>().toEqualTypeOf<
      Omit<txn.TransactionView, Renamed | "reason" | "results">
    >();
    expectTypeOf<Shown["results"]>().toExtend<txn.TransactionView["results"]>();
    expectTypeOf<keyof Shown["results"][number]>().toEqualTypeOf<keyof txn.TransactionResult>();
    expectTypeOf<keyof NonNullable<Shown["reason"]>>().toEqualTypeOf<keyof txn.TransactionReason>();
    expectTypeOf<Dashed<Shown["state"]>>().toEqualTypeOf<txn.TransactionView["state"]>();
    type Done = TxnWire<"TxnDoneAnswer">;
    expectTypeOf<Dashed<Done["state"]>>().toEqualTypeOf<Exclude<txn.TransactionOutcome["state"], "unknown">>();
    expectTypeOf<keyof Done["participants"][number]>().toEqualTypeOf<
      keyof txn.CommittedTransaction["participants"][number]
    >();
    expectTypeOf<"txnId" | Exclude<keyof txn.TransactionRequest, "id">>().toEqualTypeOf<
      keyof Camel<ClientBody<object>>
    >();
    expectTypeOf<txn.TransactionOperation["op"]>().toEqualTypeOf<OperationBody["op"]>();
    type Fields<All, Op> = Extract<All, { readonly op: Op }> extends infer One ? keyof One : never;
    expectTypeOf<Fields<Camel<OperationBody<object>>, "value.put">>().toEqualTypeOf<
      Fields<txn.TransactionOperation, "value.put">
    >();
    expectTypeOf<Fields<Camel<OperationBody<object>>, "scope.acquire">>().toEqualTypeOf<
      Fields<txn.TransactionOperation, "scope.acquire">
    >();
  });

  it("of jobs too, answers and requests", () => {
    expectTypeOf<JobWire<"JobAnswer">>().toExtend<jobs.JobView>();
    expectTypeOf<keyof jobs.JobView>().toEqualTypeOf<keyof JobWire<"JobAnswer">>();
    expectTypeOf<JobWire<"JobsAnswer">["jobs"]>().toExtend<readonly jobs.JobBrief[]>();
    expectTypeOf<keyof jobs.JobBrief>().toEqualTypeOf<keyof JobWire<"JobsAnswer">["jobs"][number]>();
    expectTypeOf<JobWire<"AgentsAnswer">["agents"]>().toExtend<readonly jobs.AgentView[]>();
    expectTypeOf<JobWire<"QueuesAnswer">["queues"]>().toExtend<readonly jobs.QueueView[]>();
    expectTypeOf<JobWire<"SchedulesAnswer">["schedules"]>().toExtend<readonly jobs.ScheduleView[]>();
    expectTypeOf<JobWire<"StatsAnswer">>().toExtend<jobs.StatsView>();
    expectTypeOf<JobWire<"KeyAnswer">>().toExtend<jobs.KeyView>();
    expectTypeOf<JobWire<"RevokedCertificateAnswer">>().toExtend<jobs.RevokedCertificateView>();
    expectTypeOf<OwnSince["events"]>().toExtend<readonly jobs.EventView[]>();
    expectTypeOf<keyof jobs.EventView>().toEqualTypeOf<keyof OwnSince["events"][number]>();
    expectTypeOf<JobWire<"LeasesAnswer">>().toExtend<work.LeaseReply>();
    expectTypeOf<keyof Snake<jobs.JobRequest>>().toEqualTypeOf<keyof Static<(typeof jobRequests)["JobBody"]>>();
    expectTypeOf<keyof Snake<jobs.ScheduleRequest> | "leader_epoch">().toEqualTypeOf<
      keyof Static<(typeof jobRequests)["ScheduleBody"]>
    >();
  });
});
