// What users' code throws and returns when it is at its worst: for the tests of everything that calls it.

const refuses = (): never => {
  throw new Error("refused");
};

type Make = () => unknown;

/** Nothing of it can be looked at. */
function closedProxy(): object {
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
  // oxlint-disable-next-line unicorn/no-thenable -- that is the point
  "a thenable whose then throws": () => Object.defineProperty({}, "then", { get: refuses }),
  "a text of 4 MiB": () => "x".repeat(4 * 1024 * 1024),
  "a ring": () => {
    const ring: { self?: unknown } = {};
    ring.self = ring;
    return ring;
  },
};

const BASES: readonly (() => object)[] = [
  () => new Error("x"),
  () => ({}),
  () => Object.create(null) as object,
  () => () => 1,
];
const WORDS: readonly unknown[] = ["JobError", "AbortError", "stopping", true, refuses];

/** One of those above, or an object with properties that lie, as the numbers say; `more`: what else they may have for values. */
export function hostileOf(numbers: readonly number[], more: readonly unknown[]): unknown {
  const named = Object.values(HOSTILE);
  const values: readonly Make[] = [...named, ...[...WORDS, ...more].map((value) => () => value)];
  const [first = 0, ...others] = numbers;
  const bare = [...named, ...more.map((value) => () => value)];
  if (others.length === 0) return pick(bare, first)();
  const dressed = pick(BASES, first)();
  for (const number of others) {
    const value = pick(values, Math.floor(number / DRESSED.length));
    const descriptor = number % 3 === 0 ? { get: refuses } : { value: value() };
    Object.defineProperty(dressed, pick(DRESSED, number), { ...descriptor, configurable: true, enumerable: true });
  }
  return dressed;
}

function pick<T>(from: readonly T[], number: number): T {
  return from[number % from.length] as T;
}
