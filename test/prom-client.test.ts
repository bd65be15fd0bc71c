// tenure/prometheus fits the real prom-client, in both of its formats.

import { type OpenMetricsContentType, Registry } from "prom-client";
import { expect, it } from "vitest";
import { createElector } from "../src/entry/index.ts";
import { prometheusText, register } from "../src/entry/prometheus.ts";
import { testBackend } from "../src/entry/testing.ts";

async function leading() {
  const backend = testBackend();
  const elector = createElector({ scope: 'a "b"\\c\n', backend });
  await elector.acquire();
  await backend.advance(backend.timing.heartbeatMs * 3);
  return elector;
}

it("a registry shows exactly what prometheusText shows", async () => {
  await using elector = await leading();
  const registry = new Registry();
  register(registry, [elector]);
  const text = (await registry.metrics()).replaceAll("\n\n", "\n");
  expect(text).toBe(prometheusText([elector]));
  expect(await registry.getMetricsAsJSON()).toHaveLength(10);
});

it("OpenMetrics names counters as it wants them, at each scrape", async () => {
  await using elector = await leading();
  const registry = new Registry<OpenMetricsContentType>();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  register(registry, [elector]);
  for (let scrape = 0; scrape < 2; scrape++) {
    const text = await registry.metrics();
    expect(text).toMatch(/^# TYPE tenure_leader_acquired counter\ntenure_leader_acquired_total\{.*\} 1$/m);
    expect(text).toMatch(/# EOF\n$/);
  }
});

it("a reset of the registry does not make counters fall, and a second registration is refused", async () => {
  await using elector = await leading();
  const registry = new Registry();
  register(registry, [elector]);
  registry.resetMetrics();
  expect(await registry.metrics()).toMatch(/^tenure_leader_acquired_total\{.*\} 1$/m);
  expect(() => register(registry, [elector])).toThrow("already been registered");
});
