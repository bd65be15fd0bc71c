import { expect, it } from "vitest";
import { formatAddress, isLoopback, parseAddress } from "./address.ts";

it.each(["10.0.0.1:7400", "n1.example.com:1", "[::1]:7400", "[fe80::1%eth0]:65535"])(
  "reads %s, and writes the same",
  (text) => {
    expect(formatAddress(parseAddress(text)!)).toBe(text);
  },
);

it.each([
  "",
  "n1",
  "n1:",
  ":7400",
  "n1:0",
  "n1:65536",
  "::1:7400",
  "[n1]:7400",
  "n1:7400/x",
  "n 1:7400",
  `${"h".repeat(300)}:1`,
])("refuses %j", (text) => {
  expect(parseAddress(text)).toBeUndefined();
});

it("loopback is what can't be anything else", () => {
  for (const host of ["localhost", "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
    expect(isLoopback(host)).toBe(true);
  for (const host of ["", "0.0.0.0", "::", "127.example.com", "localhost.example", "10.0.0.1", "1127.0.0.1"]) {
    expect(isLoopback(host)).toBe(false);
  }
});
