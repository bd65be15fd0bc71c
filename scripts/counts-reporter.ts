// Ends a test run with one plain line of counts, for people and programs that read only the last line.

import type { Reporter, TestModule } from "vitest/node";

export default class CountsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    for (const module of modules) {
      let failedTests = 0;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === "passed") counts.passed++;
        else if (state === "failed") failedTests++;
        else counts.skipped++;
      }
      // A file that could not even be loaded has no failed test, but failed.
      counts.failed += failedTests === 0 && module.state() === "failed" ? 1 : failedTests;
    }
    const skipped = counts.skipped === 0 ? "" : `, ${counts.skipped} skipped`;
    process.stdout.write(`${counts.passed} passed, ${counts.failed} failed${skipped}\n`);
  }
}
