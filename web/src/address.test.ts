import fc from "fast-check";
import { expect, it } from "vitest";
import { anyText } from "../../test/any-text.ts";
import {
  type Address,
  formatAddress,
  HOME,
  jobsPath,
  keyOf,
  meshEventsPath,
  meshJobsPath,
  parseAddress,
  valuesPath,
  VIEWS,
} from "./address.ts";
import { JOB_STATES } from "../../src/core/jobs/model.ts";

const text = anyText({ maxLength: 20 });
const addresses: fc.Arbitrary<Address> = fc.record({
  view: fc.constantFrom(...VIEWS),
  states: fc.subarray([...JOB_STATES]),
  kind: text,
  queue: text,
  search: text,
  cursor: text,
  job: text,
  scope: text,
  prefix: text,
  value: text,
  site: text,
  type: text,
  entity: text,
});

it("what is written into the URL is read back from it, whatever it is", () => {
  fc.assert(
    fc.property(addresses, (address) => {
      // A browser has no lone surrogates in its URLs.
      const wanted = JSON.parse(JSON.stringify(address), (_key, value: unknown) =>
        typeof value === "string" ? value.toWellFormed() : value,
      ) as Address;
      expect(parseAddress(formatAddress(wanted))).toEqual(wanted);
    }),
  );
});

it("the default is an empty query, and a strange one opens something", () => {
  expect(formatAddress(HOME)).toBe("?");
  expect(parseAddress("?view=nothing&state=failed,wrong,pending&other=1")).toEqual({
    ...HOME,
    states: ["pending", "failed"],
  });
});

it("the list is asked for with what is filtered, and nothing else", () => {
  expect(jobsPath(HOME, 50)).toBe("/v1/jobs?limit=50");
  const address = { ...HOME, states: ["failed"] as const, kind: "a b", search: "  ", cursor: "c/1" };
  expect(jobsPath(address, 10)).toBe("/v1/jobs?limit=10&state=failed&kind=a+b&cursor=c%2F1");
});

it("values are asked for by how their names begin, after the last one of the page before", () => {
  expect(valuesPath(HOME, 50)).toBe("/v1/values?limit=50");
  const path = valuesPath({ ...HOME, prefix: " payer/", cursor: "payer/ä b", search: "x" }, 5);
  expect(path).toBe("/v1/values?limit=5&prefix=+payer%2F&after=payer%2F%C3%A4+b");
});

it("the jobs and events of all sites are asked for in the same way", () => {
  expect(meshJobsPath(HOME, 50)).toBe("/v1/mesh/jobs?limit=50");
  expect(meshJobsPath({ ...HOME, site: "a", search: " x " }, 5)).toBe("/v1/mesh/jobs?limit=5&site=a&search=x");
  expect(meshEventsPath(HOME, null, 50)).toBe("/v1/mesh/events?limit=50");
  const address = { ...HOME, site: "a", type: "build:failed", entity: " " };
  expect(meshEventsPath(address, 0, 9)).toBe("/v1/mesh/events?limit=9&after_arrival=0&site=a&type=build%3Afailed");
});

it("a key comes in the fragment, and what is none is not taken for one", () => {
  expect(keyOf("#key=abc%2Fdef")).toBe("abc/def");
  for (const hash of ["", "#", "#key=", "#main", "#other=key=x", "#key=%zz"]) expect(keyOf(hash)).toBeNull();
});
