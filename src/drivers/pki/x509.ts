// How @peculiar/x509 is loaded. It looks its algorithms up in a container (tsyringe) that refuses to load without
// `Reflect.getMetadata`, and asks it for the types of constructor parameters. None of the classes in question has any,
// which is what is answered here; a whole polyfill of a global object would be a package more for the same word.

import { webcrypto } from "node:crypto";
import type * as x509Module from "@peculiar/x509";

export type X509 = typeof x509Module;

export async function loadX509(): Promise<X509> {
  const reflect = Reflect as { getMetadata?: () => undefined; getOwnMetadata?: () => undefined };
  reflect.getMetadata ??= nothing;
  reflect.getOwnMetadata ??= nothing;
  const x509 = await import("@peculiar/x509");
  x509.cryptoProvider.set(webcrypto);
  return x509;
}

function nothing(): undefined {
  return undefined;
}
