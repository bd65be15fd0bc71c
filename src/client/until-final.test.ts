import { describe, expect, it, vi } from "vitest";
import type { JobState } from "./job-views.ts";
import { untilFinal } from "./until-final.ts";

/** A stream of events and a job, as a test moves them. */
class Stage {
  readonly looks: JobState[] = [];
  state: JobState = "pending";
  #tell: (() => void)[] = [];
  readonly #wake = new Set<() => void>();
  #fail: ((error: Error) => void)[] = [];
  readonly items = {
    next: (): Promise<IteratorResult<unknown>> =>
      new Promise((resolve, reject) => {
        this.#tell.push(() => resolve({ done: false, value: "item" }));
        this.#fail.push(reject);
      }),
  };

  wait(): Promise<{ readonly state: JobState }> {
    const look = () => {
      this.looks.push(this.state);
      return Promise.resolve({ state: this.state });
    };
    return untilFinal(this.items, look, (_ms, wake) => {
      this.#wake.add(wake);
      return () => void this.#wake.delete(wake);
    });
  }

  async tell(): Promise<void> {
    for (const tell of this.#tell.splice(0)) tell();
    await settled();
  }

  async timePasses(): Promise<void> {
    const due = [...this.#wake];
    this.#wake.clear();
    for (const wake of due) wake();
    await settled();
  }

  async fail(error: Error): Promise<void> {
    for (const fail of this.#fail.splice(0)) fail(error);
    await settled();
  }
}

async function settled(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

describe("a job that is waited for", () => {
  it("is looked at once the stream is open, and after each of its events", async () => {
    const stage = new Stage();
    const done = stage.wait();
    await settled();
    expect(stage.looks).toEqual([]);
    await stage.tell();
    expect(stage.looks).toEqual(["pending"]);
    stage.state = "completed";
    await stage.tell();
    expect(await done).toEqual({ state: "completed" });
  });

  it("and had ended before the stream was open is found, though a look has shown it as it was before", async () => {
    const stage = new Stage();
    const done = stage.wait();
    await stage.tell();
    expect(stage.looks).toEqual(["pending"]);
    // It has long ended: no event of that will come.
    stage.state = "completed";
    await stage.timePasses();
    expect(await done).toEqual({ state: "completed" });
  });

  it("goes on with the same stream after a look that found nothing, and fails as the stream does", async () => {
    const stage = new Stage();
    const done = stage.wait();
    await stage.tell();
    await stage.timePasses();
    await stage.timePasses();
    expect(stage.looks).toEqual(["pending", "pending", "pending"]);
    const failed = expect(done).rejects.toThrow("no node serves it");
    await stage.fail(new Error("no node serves it"));
    await failed;
  });

  it("for long is looked at any number of times without anything more that hangs on the item to come", async () => {
    const item = new Promise<never>(() => undefined);
    const then = vi.spyOn(item, "then");
    let looks = 0;
    const look = () => Promise.resolve({ state: ++looks === 1_000 ? "completed" : "pending" } as const);
    await untilFinal({ next: () => item }, look, (_ms, wake) => {
      queueMicrotask(wake);
      return () => undefined;
    });
    expect(then).toHaveBeenCalledTimes(1);
  });
});
