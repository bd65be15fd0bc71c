// What the conformance suites of electors and logs share: cases for any test runner, which say what they need of the world that they
// are played in, and never pass without having run. Nothing here knows a test framework.

/** A runner's context: vitest and node:test pass one that can mark a test as skipped. */
export interface RunnerContext {
  readonly skip?: ((reason: string) => unknown) | undefined;
}

/** How a case is written down. */
export interface WrittenCase<Stage, Fault extends string> {
  readonly name: string;
  readonly needs?: readonly Fault[];
  play(stage: Stage): Promise<void>;
}

/** As a runner registers it. */
export interface RunnableCase<Fault extends string> {
  readonly name: string;
  /** The faults without which this case can't be played. */
  readonly needs: readonly Fault[];
  /**
   * Rejects with a ConformanceFailure that says what was expected. Where a fault is missing, it marks itself as skipped
   * through the runner's context, and rejects if there is none: it never passes without having run.
   */
  readonly run: (context?: RunnerContext) => Promise<void>;
}

export class ConformanceFailure extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ConformanceFailure";
  }
}

export function expect(condition: boolean, message: string): asserts condition {
  if (!condition) throw new ConformanceFailure(message);
}

interface Suite<World, Stage, Fault extends string> {
  make(): World | Promise<World>;
  plays(world: World, fault: Fault): boolean;
  /** On a stage of its own, and takes that down with the world. */
  play(one: WrittenCase<Stage, Fault>, world: World, index: number): Promise<void>;
}

export function runnable<World extends { dispose(): Promise<void> }, Stage, Fault extends string>(
  cases: readonly WrittenCase<Stage, Fault>[],
  suite: Suite<World, Stage, Fault>,
): RunnableCase<Fault>[] {
  const run = async (one: WrittenCase<Stage, Fault>, index: number, context: RunnerContext = {}): Promise<void> => {
    const world = await suite.make();
    const missing = (one.needs ?? []).filter((fault) => !suite.plays(world, fault));
    if (missing.length === 0) return suite.play(one, world, index);
    await world.dispose();
    const reason = `this world can't ${missing.join(", ")}`;
    if (typeof context.skip === "function") return void context.skip(reason);
    throw new ConformanceFailure(
      `skipped: ${reason}, and this runner passed no context to skip with. Leave the case out by its \`needs\`.`,
    );
  };
  return cases.map((one, index) => ({
    name: one.name,
    needs: one.needs ?? [],
    // Without a parameter that counts: jest takes the first one for a callback.
    run: (...[context]: [RunnerContext?]) => run(one, index, context),
  }));
}
