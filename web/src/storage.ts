// What the tab remembers over a reload. A browser that forbids it costs only that.

export function recall(name: string): string | null {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null;
  }
}

/** "" forgets it. */
export function remember(name: string, value: string): void {
  try {
    if (value === "") sessionStorage.removeItem(name);
    else sessionStorage.setItem(name, value);
  } catch {
    // Forbidden, or full: it is remembered until the page is left.
  }
}
