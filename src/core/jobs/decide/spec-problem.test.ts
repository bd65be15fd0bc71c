import { describe, expect, it } from "vitest";
import { canonicalJson } from "../../events/index.ts";
import { JOB_VARIABLES } from "../../kit/job-variables.ts";
import { INTEGER_MAX } from "../../kit/limits.ts";
import { JobsBook } from "../state/book.ts";
import { Desk, REQUEST, spec } from "../test-desk.ts";

describe("a command's environment", () => {
  const desk = new Desk(new JobsBook({ canonical: (value) => canonicalJson(value, INTEGER_MAX) }));
  const submit = (env: Record<string, string>, kind = "exec"): unknown =>
    desk.decide<"submit">({
      kind: "submit",
      request: REQUEST,
      specs: [spec({ kind, payload: { command: ["true"], env } })],
    });

  it.each(JOB_VARIABLES)("can't have %s: Tenure knows its own processes by it", (name) => {
    expect(submit({ STAGE: "test", [name]: "1" })).toMatchObject({
      kind: "refused",
      code: "BAD_REQUEST",
      message: `Job 1: payload.env has ${name}, which Tenure sets itself; leave it out. None was submitted.`,
    });
  });

  it("may have whatever else there is, and payloads of other kinds are nobody's business", () => {
    expect(submit({ TENURE_URL: "http://a", STAGE: "test" })).toMatchObject({ kind: "decided" });
    expect(submit({ TENURE_KEEPER: "1" }, "build")).toMatchObject({ kind: "decided" });
  });
});
