import { describe, expectTypeOf, it } from "vitest";
import type { Static } from "typebox";
import type * as answers from "../contract/answers.ts";
import type * as jobAnswers from "../contract/jobs/answers.ts";
import type * as jobRequests from "../contract/jobs/requests.ts";
import type { Camel, Snake } from "../contract/snake-case.ts";
import type * as jobs from "./job-views.ts";
import type * as views from "./views.ts";
import type * as work from "./work.ts";

type Frozen<T> = T extends readonly (infer One)[]
  ? readonly Frozen<One>[]
  : T extends object
    ? { readonly [Name in keyof T]: Frozen<T[Name]> }
    : T;
type Wire<Name extends keyof typeof answers> = Frozen<Camel<Static<(typeof answers)[Name]>>>;
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
