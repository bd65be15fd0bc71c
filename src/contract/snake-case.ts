// The wire speaks snake_case, the code camelCase, and this is the one place that knows both. Keys are converted, values
// never. What is under `metadata`, `labels`, `payload`, `result`, `detail` and `value` is the user's own, keys included, and
// passes untouched.

import { FIELD_NAMES_KEPT_MAX, OWN_DEPTH_MAX } from "./limits.ts";

type UsersOwn = "metadata" | "labels" | "payload" | "result" | "detail" | "value";

/** `electionTimeoutMinMs` → `election_timeout_min_ms`. */
export type SnakeKey<Key> = Key extends `${infer Head}${infer Tail}`
  ? Tail extends Uncapitalize<Tail>
    ? `${Lowercase<Head>}${SnakeKey<Tail>}`
    : `${Lowercase<Head>}_${SnakeKey<Uncapitalize<Tail>>}`
  : Key;

export type CamelKey<Key> = Key extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<CamelKey<Tail>>}` : Key;

export type Snake<T> = T extends readonly (infer Item)[]
  ? Snake<Item>[]
  : T extends object
    ? { [Key in keyof T as SnakeKey<Key>]: Key extends UsersOwn ? T[Key] : Snake<T[Key]> }
    : T;

export type Camel<T> = T extends readonly (infer Item)[]
  ? Camel<Item>[]
  : T extends object
    ? { [Key in keyof T as CamelKey<Key>]: Key extends UsersOwn ? T[Key] : Camel<T[Key]> }
    : T;

const USERS_OWN: ReadonlySet<string> = new Set<UsersOwn>([
  "metadata",
  "labels",
  "payload",
  "result",
  "detail",
  "value",
]);

const toSnakeKey = remembered(snakeKey);
const toCamelKey = remembered(camelKey);

export function toSnake<T>(value: T): Snake<T> {
  return converted(value, toSnakeKey, OWN_DEPTH_MAX) as Snake<T>;
}

export function toCamel<T>(value: T): Camel<T> {
  return converted(value, toCamelKey, OWN_DEPTH_MAX) as Camel<T>;
}

export function snakeKey(key: string): string {
  return key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function camelKey(key: string): string {
  return key.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

function remembered(rename: (key: string) => string): (key: string) => string {
  const known = new Map<string, string>();
  return (key) => {
    const found = known.get(key);
    if (found !== undefined) return found;
    const name = rename(key);
    if (known.size < FIELD_NAMES_KEPT_MAX) known.set(key, name);
    return name;
  };
}

function converted(value: unknown, rename: (key: string) => string, depthLeft: number): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (depthLeft === 0) throw new RangeError(`more than ${OWN_DEPTH_MAX} levels of objects`);
  if (Array.isArray(value)) return value.map((item) => converted(item, rename, depthLeft - 1));
  // A loop, for an answer with a hundred leases has two thousand names: a list of pairs took five times as long.
  const renamed: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    const item = (value as Record<string, unknown>)[key];
    const isPlain = typeof item !== "object" || item === null || USERS_OWN.has(key);
    put(renamed, rename(key), isPlain ? item : converted(item, rename, depthLeft - 1));
  }
  return renamed;
}

function put(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== "__proto__") object[name] = value;
  else Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}
