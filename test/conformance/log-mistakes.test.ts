// Logs with a planted mistake each: the suite must find every one of them, by the case that is about it.

import { expect, it } from "vitest";
import { ConformanceFailure } from "../../src/loops/conformance.ts";
import { logConformance, type LogWorld } from "../../src/logs/conformance/index.ts";
import type { Log, LogAppended, LogHead, LogOpened, LogRecord } from "../../src/ports/log.ts";
import { type Disguise, memoryLogWorld, raftLogWorld } from "./test-log-worlds.ts";

/** A log that is right; each mistake changes one thing. */
class Honest implements Log {
  protected readonly inner: Log;

  constructor(inner: Log) {
    this.inner = inner;
  }

  head(): LogHead {
    return this.inner.head();
  }

  open(epoch: number): Promise<LogOpened> {
    return this.inner.open(epoch);
  }

  append(epoch: number, after: number, batch: readonly Uint8Array[]): Promise<LogAppended> {
    return this.inner.append(epoch, after, batch);
  }

  read(from: number, max: number): Promise<readonly LogRecord[]> {
    return this.inner.read(from, max);
  }

  subscribe(from: number, tell: (record: LogRecord) => void, compacted: () => void): () => void {
    return this.inner.subscribe(from, tell, compacted);
  }
}

class AcknowledgesBeforeCommit extends Honest {
  override append(epoch: number, after: number, batch: readonly Uint8Array[]): Promise<LogAppended> {
    this.inner.append(epoch, after, batch).catch(() => undefined);
    return Promise.resolve({ outcome: "committed", position: after + batch.length });
  }
}

class IgnoresTheFence extends Honest {
  override append(_epoch: number, after: number, batch: readonly Uint8Array[]): Promise<LogAppended> {
    return this.inner.append(this.inner.head().epoch, after, batch);
  }
}

class OpensLowerEpochs extends Honest {
  override async open(epoch: number): Promise<LogOpened> {
    const opened = await this.inner.open(epoch);
    return opened.outcome === "opened" ? opened : { outcome: "opened", head: this.inner.head() };
  }
}

class OpensAtAnOldHead extends Honest {
  override async open(epoch: number): Promise<LogOpened> {
    const opened = await this.inner.open(epoch);
    if (opened.outcome !== "opened") return opened;
    return { outcome: "opened", head: { epoch, position: Math.max(0, opened.head.position - 1) } };
  }
}

class Reorders extends Honest {
  override append(epoch: number, after: number, batch: readonly Uint8Array[]): Promise<LogAppended> {
    return this.inner.append(epoch, after, batch.toReversed());
  }
}

class WritesPartOfABatch extends Honest {
  override async append(epoch: number, after: number, batch: readonly Uint8Array[]): Promise<LogAppended> {
    if (batch.length === 1) return this.inner.append(epoch, after, batch);
    const first = await this.inner.append(epoch, after, batch.slice(0, 1));
    // The rest as an append of its own: a crash or a new leader may come between.
    return first.outcome === "committed" ? this.inner.append(epoch, after + 1, batch.slice(1)) : first;
  }
}

class ForgetsTheEndOfABatch extends Honest {
  override async append(epoch: number, after: number, batch: readonly Uint8Array[]): Promise<LogAppended> {
    const appended = await this.inner.append(epoch, after, batch.slice(0, 2));
    return appended.outcome === "committed" ? { ...appended, position: after + batch.length } : appended;
  }
}

class IgnoresAfter extends Honest {
  override append(epoch: number, _after: number, batch: readonly Uint8Array[]): Promise<LogAppended> {
    return this.inner.append(epoch, this.inner.head().position, batch);
  }
}

class CallsUnknownFenced extends Honest {
  override async append(epoch: number, after: number, batch: readonly Uint8Array[]): Promise<LogAppended> {
    const appended = await this.inner.append(epoch, after, batch);
    return appended.outcome === "unknown" ? { outcome: "fenced", epoch: null } : appended;
  }
}

class CallsUnknownCommitted extends Honest {
  override async append(epoch: number, after: number, batch: readonly Uint8Array[]): Promise<LogAppended> {
    const appended = await this.inner.append(epoch, after, batch);
    return appended.outcome === "unknown" ? { outcome: "committed", position: after + batch.length } : appended;
  }
}

class RetriesWhatIsUnknown extends Honest {
  override async append(epoch: number, after: number, batch: readonly Uint8Array[]): Promise<LogAppended> {
    await this.inner.append(epoch, after, batch);
    const { position } = this.inner.head();
    return this.inner.append(epoch, position, batch);
  }
}

class TellsTwice extends Honest {
  override subscribe(from: number, tell: (record: LogRecord) => void, compacted: () => void): () => void {
    return this.inner.subscribe(Math.max(1, from - 1), tell, compacted);
  }
}

class SkipsWhatWasThere extends Honest {
  override subscribe(from: number, tell: (record: LogRecord) => void, compacted: () => void): () => void {
    return this.inner.subscribe(Math.max(from, this.inner.head().position + 1), tell, compacted);
  }
}

class JumpsOverAGap extends Honest {
  override subscribe(from: number, tell: (record: LogRecord) => void): () => void {
    let stop = (): void => undefined;
    const onward = (): void => {
      stop = this.inner.subscribe(this.inner.head().position + 1, tell, onward);
    };
    stop = this.inner.subscribe(from, tell, onward);
    return () => stop();
  }
}

class NeverUnsubscribes extends Honest {
  override subscribe(from: number, tell: (record: LogRecord) => void, compacted: () => void): () => void {
    this.inner.subscribe(from, tell, compacted);
    return () => undefined;
  }
}

class ReadsTooMuch extends Honest {
  override read(from: number): Promise<readonly LogRecord[]> {
    return this.inner.read(from, 1_000);
  }
}

class ReadsNothingWhereItForgot extends Honest {
  override read(from: number, max: number): Promise<readonly LogRecord[]> {
    return this.inner.read(from, max).catch(() => []);
  }
}

type Mistake = new (inner: Log) => Log;
type MakeWorld = (disguise: Disguise) => LogWorld | Promise<LogWorld>;

const MISTAKES: readonly (readonly [Mistake, MakeWorld, string])[] = [
  [AcknowledgesBeforeCommit, raftLogWorld, "a leader that is cut off never says committed"],
  [IgnoresTheFence, memoryLogWorld, "once a higher epoch is opened the lower one appends nothing"],
  [OpensLowerEpochs, memoryLogWorld, "a lower epoch can't be opened"],
  [OpensAtAnOldHead, memoryLogWorld, "opening tells a head with everything"],
  [OpensAtAnOldHead, raftLogWorld, "opening tells a head with everything"],
  [Reorders, memoryLogWorld, "committed in the order of the calls"],
  [WritesPartOfABatch, raftLogWorld, "committed in the order of the calls"],
  [ForgetsTheEndOfABatch, memoryLogWorld, "a batch gets consecutive positions"],
  [IgnoresAfter, memoryLogWorld, "an append that names another position than the end"],
  [CallsUnknownFenced, raftLogWorld, "whenever a cut overtakes an append"],
  [CallsUnknownCommitted, raftLogWorld, "a leader that is cut off never says committed"],
  [RetriesWhatIsUnknown, memoryLogWorld, "an append is committed directly behind"],
  [TellsTwice, memoryLogWorld, "who resumes from where it stopped"],
  [SkipsWhatWasThere, memoryLogWorld, "who subscribes late"],
  [JumpsOverAGap, raftLogWorld, "a node that was cut off while records went by"],
  [NeverUnsubscribes, memoryLogWorld, "who leaves inside of a call"],
  [ReadsTooMuch, memoryLogWorld, "reading gives at most"],
  [ReadsNothingWhereItForgot, memoryLogWorld, "what is not kept any more is refused"],
];

for (const [Mistake, makeWorld, about] of MISTAKES) {
  it(`${Mistake.name} is found on ${makeWorld.name}: ${about}`, async () => {
    const failed: string[] = [];
    for (const { name, run } of logConformance(() => makeWorld((log) => new Mistake(log)))) {
      if (!name.includes(about)) continue;
      await run().catch((error: unknown) => {
        expect(error).toBeInstanceOf(ConformanceFailure);
        failed.push(name);
      });
    }
    expect(failed.join("\n")).toContain(about);
  });
}

it("the same log without a mistake passes, so it is the mistakes that are found", async () => {
  for (const { run } of logConformance(() => memoryLogWorld((log) => new Honest(log)))) await run();
});

it("a case that can't be played is skipped, or fails where the runner can't skip: it never passes unseen", async () => {
  const weak = (): LogWorld => ({ ...memoryLogWorld(), cut: undefined, crash: undefined });
  for (const { needs, run } of logConformance(weak)) {
    if (needs.length === 0) continue;
    const skipped: string[] = [];
    await run({ skip: (reason) => skipped.push(reason) });
    expect(skipped).toEqual([`this world can't ${needs.join(", ")}`]);
    await expect(run()).rejects.toThrow(/skipped: this world can't/);
  }
});
