// CRC-32 (ISO-HDLC) of what was checksummed in parts: the checksum of two pieces of which only theirs are known. It is
// a remainder of polynomials over GF(2), so bytes that follow multiply it by a power of x; no byte is read again.

/** The polynomial, as every such checksum in here has it: the bit of the highest power comes last. */
const POLYNOMIAL = 0xedb88320;
/** x to the power of 0, and of 8, which is one byte. */
const ONE = 0x80000000;
const ONE_BYTE = 0x00800000;

/** Of the piece with the checksum `first`, and after it the one with `second`, which has so many bytes. */
export function crc32OfBoth(first: number, second: number, secondBytes: number): number {
  return (product(powerOf(ONE_BYTE, secondBytes), first) ^ second) >>> 0;
}

function powerOf(base: number, exponent: number): number {
  let power = ONE;
  let square = base;
  for (let rest = exponent; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) power = product(power, square);
    square = product(square, square);
  }
  return power;
}

/** Of two polynomials, modulo POLYNOMIAL. */
function product(a: number, b: number): number {
  let sum = 0;
  let shifted = b >>> 0;
  for (let bit = ONE; bit !== 0; bit >>>= 1) {
    if ((a & bit) !== 0) sum ^= shifted;
    shifted = (shifted & 1) === 0 ? shifted >>> 1 : (shifted >>> 1) ^ POLYNOMIAL;
  }
  return sum >>> 0;
}
