// The door of the backend in memory: what `tenure/testing` gives to users.

export { memoryBackend, type TestBackend, type TestBackendOptions } from "./memory-backend.ts";
export type { TestValues } from "./values.ts";
export type { TestResource } from "./resource.ts";
export type { TestClient, TestPool, TestQuery, TestQueryConfig, TestResult, TestStatement } from "./test-pool.ts";
