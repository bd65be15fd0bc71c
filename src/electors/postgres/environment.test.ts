import { expect, it } from "vitest";
import { readEnvironment } from "./environment.ts";
import { settingsOf } from "./options.ts";

const url = "postgres://h/d";
const read = (env: Record<string, string>): ReturnType<typeof readEnvironment> =>
  readEnvironment({ TENURE_PG_CONN_STRING: url, ...env }, (options) => void settingsOf(options));

it("gives what is set, and nothing else", () => {
  expect(read({})).toEqual({ enabled: true, options: { url } });
  expect(read({ TENURE_HEARTBEAT_INTERVAL_MS: "3000", TENURE_LEADER_LOCK_KEY: "-7", PATH: "/bin" })).toEqual({
    enabled: true,
    options: { url, heartbeatMs: 3_000, lockKey: "-7" },
  });
});

it("takes an empty variable for an unset one", () => {
  expect(read({ TENURE_LEADER_ENABLED: " ", TENURE_PG_LISTEN_CHANNEL: "" })).toEqual({
    enabled: true,
    options: { url },
  });
});

it.each([
  ["true", true],
  ["1", true],
  ["FALSE", false],
  ["0", false],
  ["off", false],
])("reads TENURE_LEADER_ENABLED=%s", (text, enabled) => {
  expect(read({ TENURE_LEADER_ENABLED: text }).enabled).toBe(enabled);
});

it("does not mind variables of later versions", () => {
  expect(read({ TENURE_SOMETHING_NEW: "x" }).options).toEqual({ url });
});

it.each([
  [{ TENURE_LEADER_ENABLED: "maybe" }, 'TENURE_LEADER_ENABLED is "maybe", and must be true or false'],
  [{ TENURE_HEARTBEAT_INTERVAL_MS: "1s" }, 'TENURE_HEARTBEAT_INTERVAL_MS is "1s", and must be a whole number'],
  [{ TENURE_HEARTBEAT_INTERVAL_MS: "0" }, "TENURE_HEARTBEAT_INTERVAL_MS is 0"],
  [
    { TENURE_ACQUIRE_BACKOFF_MS_MIN: "900", TENURE_ACQUIRE_BACKOFF_MS_MAX: "800" },
    "TENURE_ACQUIRE_BACKOFF_MS_MIN is 900, more than TENURE_ACQUIRE_BACKOFF_MS_MAX (800)",
  ],
  [{ TENURE_LEADER_LOCK_KEY: "seven" }, 'TENURE_LEADER_LOCK_KEY is "seven"'],
  [{ TENURE_PG_CONN_STRING: "host=h" }, "TENURE_PG_CONN_STRING is not a Postgres URL"],
])("names the variable that is wrong: %o", (env, message) => {
  expect(() => read(env)).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
  expect(() => read(env)).toThrow(message);
});

it("says which variable is missing", () => {
  expect(() => readEnvironment({}, (options) => void settingsOf(options))).toThrow("TENURE_PG_CONN_STRING is missing");
});
