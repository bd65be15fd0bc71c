// The client that `term.tx` lends to its work: everything that can be reached from it leads through here.
//
//   lent: calls pass, after `before` was called ──▶ over: every call is refused by `before`
//
// Invariants:
// - The client itself never comes out: not from a method that returns it (`on`, `once`, …), nor a promise of it (`connect`),
//   nor as `this` of a listener, nor as a property's descriptor.
// - Objects with methods that hang on the client (its connection, that one's socket) are lent in the same way: whatever was
//   kept of them is refused once the work has settled.
// - `before` has run before any code can act on what it was given, also by a method of the prototype that is called with the
//   lent client: such a method must read a property of it first.
//
// It guards against mistakes of helpers and libraries, not against malice: a text can forge the mark by its name, and a
// submittable (a cursor, a COPY stream) is handed the connection by the driver itself; `before` sees that it is one.

import { TenureError } from "../../../core/kit/errors.ts";

export interface Watch {
  /**
   * What is about to be used of the client, and by a call with which argument; throws where that is refused. `query` alone
   * is known by its text; anything else may do anything.
   */
  before(name: string | symbol, query: unknown): void;
  /** Something that can send by itself is lent: whose answers come next on the client is not known any more. */
  opened(): void;
  /** An error that the client itself has given to its user, by a promise, a callback or an event. */
  failed(error: Error): void;
}

type AnyFunction = (this: unknown, ...args: unknown[]) => unknown;

/** Methods that call functions that they are given, with the client as `this` or as an argument. */
const CALL_BACK: ReadonlySet<string | symbol> = new Set([
  "on",
  "once",
  "addListener",
  "prependListener",
  "prependOnceListener",
  "off",
  "removeListener",
  "query",
  "connect",
  "end",
]);

export function lentClient<Client>(client: Client, watch: Watch): Client {
  return new Membrane(watch).lend(client as object) as Client;
}

class Membrane {
  readonly #watch: Watch;
  readonly #lent = new WeakMap<object, object>();
  readonly #methods = new WeakMap<object, Map<AnyFunction, AnyFunction>>();
  readonly #listeners = new WeakMap<AnyFunction, AnyFunction>();

  constructor(watch: Watch) {
    this.#watch = watch;
  }

  lend(target: object): object {
    const known = this.#lent.get(target);
    if (known !== undefined) return known;
    const lent = new Proxy(target, {
      get: (_target, name) => this.#read(target, name, Reflect.get(target, name, target)),
      set: (_target, name, value) => this.#write(target, name, value),
      getOwnPropertyDescriptor: (_target, name) => {
        const descriptor = Reflect.getOwnPropertyDescriptor(target, name);
        // One that can't be changed must be shown as it is.
        if (descriptor?.configurable !== true || !("value" in descriptor)) return descriptor;
        return { ...descriptor, value: this.#read(target, name, descriptor.value) };
      },
    });
    this.#lent.set(target, lent);
    return lent;
  }

  #read(target: object, name: string | symbol, value: unknown): unknown {
    if (typeof value === "function") {
      return name === "constructor" ? value : this.#method(target, name, value as AnyFunction);
    }
    if (typeof value !== "object" || value === null) return value;
    this.#watch.before(name, undefined);
    if (!hasMethods(value)) return value;
    if (canSend(value)) this.#watch.opened();
    return this.lend(value);
  }

  /** A method that is replaced would outlive the loan, and be called by whoever borrows the client next. */
  #write(target: object, name: string | symbol, value: unknown): boolean {
    if (typeof Reflect.get(target, name, target) === "function") {
      throw new TenureError(
        "TX_MISUSED",
        `term.tx: its work replaced the method ${String(name)} of its client, which others borrow after it. Wrap the client instead.`,
      );
    }
    this.#watch.before(name, undefined);
    return Reflect.set(target, name, value, target);
  }

  #method(target: object, name: string | symbol, method: AnyFunction): AnyFunction {
    const known = this.#methods.get(target) ?? new Map<AnyFunction, AnyFunction>();
    this.#methods.set(target, known);
    const made = known.get(method);
    if (made !== undefined) return made;
    // A proxy: some of what looks like a method is a class (`_Promise`), and stays one.
    const lent = new Proxy(method, {
      apply: (_method, _self, args: unknown[]) => {
        this.#watch.before(name, args[0]);
        const given = CALL_BACK.has(name) ? args.map((arg) => this.#listener(arg)) : args;
        return this.#returned(Reflect.apply(method, target, given));
      },
    });
    known.set(method, lent);
    return lent;
  }

  #returned(value: unknown): unknown {
    if (typeof value !== "object" || value === null) return value;
    if (!(value instanceof Promise)) return this.#known(value);
    return value.then(
      (settled: unknown) => this.#known(settled),
      (error: unknown) => {
        if (error instanceof Error) this.#watch.failed(error);
        throw error;
      },
    );
  }

  /** What was lent already is lent, wherever it turns up. Results, queries and cursors are the work's own. */
  #known(value: unknown): unknown {
    return typeof value === "object" && value !== null ? (this.#lent.get(value) ?? value) : value;
  }

  /** The same one for the same listener, so that it can be taken away again. */
  #listener(value: unknown): unknown {
    if (typeof value !== "function") return value;
    const listener = value as AnyFunction;
    const known = this.#listeners.get(listener);
    if (known !== undefined) return known;
    const lent = (one: unknown): unknown => this.#known(one);
    const watch = this.#watch;
    const wrapped = function (this: unknown, ...args: unknown[]): unknown {
      if (args[0] instanceof Error) watch.failed(args[0]);
      return Reflect.apply(listener, lent(this), args.map(lent));
    };
    this.#listeners.set(listener, wrapped);
    return wrapped;
  }
}

/** A connection, or a socket. */
function canSend(value: object): boolean {
  return ["query", "write"].some((name) => typeof Reflect.get(value, name, value) === "function");
}

/** Of a class, other than what only holds values. */
function hasMethods(value: object): boolean {
  if (Array.isArray(value) || ArrayBuffer.isView(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype !== null && prototype !== Object.prototype;
}
