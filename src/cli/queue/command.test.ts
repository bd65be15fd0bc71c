import { describe, expect, it } from "vitest";
import { UsageError } from "../kit/flags.ts";
import { listText } from "../kit/list-output.ts";
import type { Client, JobBrief, ScheduleView } from "../../client/index.ts";
import { queueObject, queuesTable, readQueueFlags, strangerText } from "./command.ts";
import { briefOf, jobOf } from "../job/test-job.ts";

const step = (...args: readonly string[]) => {
  const found = readQueueFlags(args);
  return found === "help" ? found : found.step;
};

const wrong = (...args: readonly string[]): string => {
  try {
    readQueueFlags(args);
  } catch (error) {
    if (error instanceof UsageError) return error.message;
  }
  throw new Error(`${JSON.stringify(args)} was taken`);
};

const QUEUES = [
  { queue: "default", paused: false, pending: 12, running: 3 },
  { queue: "mail", paused: true, pending: 0, running: 0 },
];

describe("tenure queue", () => {
  it("takes a name to pause and to resume, and none to list", () => {
    expect(step("list")).toEqual({ verb: "list" });
    expect(step("pause", "mail")).toEqual({ verb: "pause", name: "mail" });
    expect(step("resume", "mail")).toEqual({ verb: "resume", name: "mail" });
    expect(step("--help")).toBe("help");
  });

  it("says what is wrong before anything is asked", () => {
    expect(wrong()).toBe("say what to do: list, pause, resume");
    expect(wrong("puase")).toBe('there is no "puase"; did you mean pause?');
    expect(wrong("list", "mail")).toBe('list takes no "mail"');
    expect(wrong("pause")).toBe("pause needs a name: tenure queue pause NAME");
    expect(wrong("resume", "a", "b", "c")).toBe("resume takes one name, not 3");
  });

  it("prints a table, one object, or an object on each line", () => {
    expect(queuesTable(QUEUES)).toBe(
      ["NAME     STATE   PENDING  RUNNING\n", "default  open    12       3\n", "mail     paused  0        0\n"].join(
        "",
      ),
    );
    const text = (output: "table" | "json" | "jsonl") =>
      listText(output, "queues", QUEUES.map(queueObject), () => "the table\n");
    expect(text("table")).toBe("the table\n");
    const lines = [
      '{"name":"default","paused":false,"pending":12,"running":3}',
      '{"name":"mail","paused":true,"pending":0,"running":0}',
    ];
    expect(text("jsonl")).toBe(`${lines.join("\n")}\n`);
    expect(text("json")).toBe(`{"queues":[${lines.join(",")}]}\n`);
    expect(listText("json", "queues", [], () => "")).toBe('{"queues":[]}\n');
    expect(listText("jsonl", "queues", [], () => "")).toBe("");
  });
});

describe("a queue that is paused or resumed", () => {
  const clientOf = (jobs: readonly JobBrief[]): Pick<Client, "queues" | "schedules" | "jobs"> => ({
    queues: async () => [...QUEUES, { queue: "defualt", paused: true, pending: 0, running: 0 }],
    schedules: async () => [{ spec: { ...jobOf().spec, queue: "nightly" } } as ScheduleView],
    async *jobs(query) {
      yield* jobs.filter(({ queue }) => queue === query?.queue);
    },
  });

  it("is told to be unknown where no job and no schedule has it, with the name that may be meant", async () => {
    const client = clientOf([briefOf({ queue: "done", state: "completed" })]);
    for (const known of ["default", "nightly", "done"]) expect(await strangerText(client, known), known).toBeNull();
    expect(await strangerText(client, "defualt")).toBe("no job is in the queue defualt; did you mean default?");
    expect(await strangerText(client, "nightl")).toBe("no job is in the queue nightl; did you mean nightly?");
    expect(await strangerText(client, "reports")).toBe("no job is in the queue reports, and no schedule has it");
  });
});
