// Bytes in pieces of a bounded size; nothing is one empty piece.

export function sliced(bytes: Uint8Array, max: number): Uint8Array[] {
  const slices: Uint8Array[] = [];
  for (let at = 0; at === 0 || at < bytes.length; at += max) slices.push(bytes.subarray(at, at + max));
  return slices;
}
