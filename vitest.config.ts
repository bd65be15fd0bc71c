import { defineConfig } from "vitest/config";

// Two projects: `unit` stands beside the code and takes seconds (npm run test:unit); `whole` looks at the
// repository, its tools and whole simulated clusters.
export default defineConfig({
  test: {
    allowOnly: false,
    reporters: ["default", "./scripts/counts-reporter.ts"],
    projects: [
      // Pure code keeps no state between files, and a process for each of them took most of the time: 18 s, now 8 s.
      { test: { name: "unit", include: ["src/**/*.test.ts"], testTimeout: 10_000, isolate: false } },
      { test: { name: "whole", include: ["test/**/*.test.ts"], testTimeout: 120_000, hookTimeout: 120_000 } },
    ],
  },
});
