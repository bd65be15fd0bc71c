// The only ambient names that core/ and ports/ may use. The compiler gets no DOM and no Node types
// there (`types: []`), so a clock, a timer, randomness or I/O in these rooms does not compile.

interface TextEncoder {
  encode(text?: string): Uint8Array;
  encodeInto(text: string, into: Uint8Array): { readonly read: number; readonly written: number };
}
declare const TextEncoder: { new (): TextEncoder };

interface TextDecoder {
  decode(bytes?: Uint8Array): string;
}
/** Never without `ignoreBOM`, which keeps the mark: it is a letter, and dropping it makes two names one. */
declare const TextDecoder: { new (label: "utf-8", options: { fatal: true; ignoreBOM: true }): TextDecoder };

interface AbortSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}
