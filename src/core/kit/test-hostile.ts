// What users' code throws and returns when it is at its worst: for the tests of everything that calls it.

import fc from "fast-check";

const refuses = (): never => {
  throw new Error("refused");
};

type Make = () => unknown;

/** Nothing of it can be looked at. */
export function closedProxy(): object {
  const handler: ProxyHandler<object> = {};
  for (const trap of ["get", "has", "ownKeys", "getPrototypeOf", "getOwnPropertyDescriptor"] as const)
    handler[trap] = refuses;
  return new Proxy({}, handler);
}

const DRESSED: readonly PropertyKey[] = [
  "message",
  "name",
  "toString",
  "toJSON",
  "then",
  "retry",
  "detail",
  "reason",
  "code",
  "cause",
];

/** By what they are; each is made anew. */
export const HOSTILE: Readonly<Record<string, Make>> = {
  "an object without a prototype": () => Object.create(null) as unknown,
  "an error whose message is an object": () =>
    Object.assign(new Error("x"), { message: Object.create(null) as unknown }),
  "an error whose name is undefined": () => Object.assign(new Error("x"), { name: undefined }),
  "an error whose name is a symbol": () => Object.assign(new Error("x"), { name: Symbol("n") }),
  "an error whose getters throw": () =>
    Object.defineProperties(new Error("x"), { message: { get: refuses }, name: { get: refuses } }),
  "a JobError whose detail throws": () =>
    Object.defineProperties(new Error("x"), {
      name: { value: "JobError" },
      retry: { value: true },
      detail: { get: refuses },
    }),
  "a proxy that refuses everything": closedProxy,
  "a revoked proxy": () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  },
  "a symbol": () => Symbol("thrown"),
  undefined: () => undefined,
  null: () => null,
  "a function": () => refuses,
  "a BigInt": () => 10n ** 400n,
  "an object whose toString throws": () => ({ toString: refuses }),
  "an object whose toJSON throws": () => ({ toJSON: refuses }),
  "a thenable whose then throws": () => Object.defineProperty({}, "then", { get: refuses }),
  "a text of 4 MiB": () => "x".repeat(4 * 1024 * 1024),
  "a ring": () => {
    const ring: { self?: unknown } = {};
    ring.self = ring;
    return ring;
  },
};

const named: fc.Arbitrary<Make> = fc.constantFrom(...Object.values(HOSTILE));
const anything: fc.Arbitrary<Make> = fc
  .anything({ withBigInt: true, withNullPrototype: true, withSparseArray: true, withDate: true, withMap: true })
  .map((value) => () => value);
const word: fc.Arbitrary<Make> = fc
  .constantFrom("JobError", "AbortError", "stopping", true, refuses)
  .map((value) => () => value);

/** Makes anything, with properties that lie; what it makes would break fast-check itself. */
export const hostile: fc.Arbitrary<Make> = fc.oneof(
  named,
  anything,
  fc
    .tuple(
      fc.constantFrom<() => object>(
        () => new Error("x"),
        () => ({}),
        () => Object.create(null) as object,
        () => () => 1,
      ),
      fc.array(fc.tuple(fc.constantFrom(...DRESSED), fc.oneof(named, anything, word), fc.boolean()), { maxLength: 6 }),
    )
    .map(([make, properties]) => () => {
      const dressed = make();
      for (const [key, value, isGetter] of properties) {
        const descriptor = isGetter ? { get: refuses } : { value: value() };
        Object.defineProperty(dressed, key, { ...descriptor, configurable: true, enumerable: true });
      }
      return dressed;
    }),
);
