// Callbacks of users throw anything (trap 80): objects without a prototype, proxies, getters that throw, promises that reject
// later. What they are called with is decided elsewhere; here is how nothing of what they do reaches the loop that calls them.
//
// A callback that blocks the thread blocks everything in it, and what it leaves unhandled elsewhere is the process's affair:
// neither can be prevented from here.

const UNREADABLE = "what was thrown can't be read as text";

/** Of whatever was thrown. Never throws. */
export function messageOf(thrown: unknown): string {
  try {
    return String(thrown instanceof Error ? thrown.message : thrown);
  } catch {
    return UNREADABLE;
  }
}

/** An Error as it is, anything else as an Error that says it. Never throws. */
export function errorOf(thrown: unknown): Error {
  try {
    if (thrown instanceof Error) return thrown;
  } catch {
    // A proxy that does not say what it is.
  }
  return new Error(messageOf(thrown));
}

/** Calls it now, and hears also what it rejects with later: it may be asynchronous, whatever its type says. */
export function harmlessly(call: () => unknown, failed: (thrown: unknown) => void = () => undefined): void {
  const report = (thrown: unknown): void => {
    try {
      failed(thrown);
    } catch {
      // There is nowhere left to say it.
    }
  };
  try {
    Promise.resolve(call()).catch(report);
  } catch (thrown) {
    report(thrown);
  }
}
