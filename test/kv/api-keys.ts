// Keys of the API in the test store: an entry each, from the key's hash to its role.

export function keyEntry(sha256: string): string {
  return `key/${sha256}`;
}
