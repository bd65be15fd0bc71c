// A body, piece by piece, for as long as its call lasts. Written with a reader: not every browser can walk through a stream with
// `for await`.

/** Of each response, when its call is over: a `fetch` of the user's may not know the signal, and then neither does its body. */
const ends = new WeakMap<Response, AbortSignal>();

export function endWith(response: Response, signal: AbortSignal): void {
  ends.set(response, signal);
}

export async function* chunksOf(response: Response): AsyncGenerator<Uint8Array, void, void> {
  if (response.body === null) return;
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  let isDone = false;
  try {
    for (;;) {
      const { done, value } = await unlessAborted(reader.read(), ends.get(response));
      isDone = done;
      if (value === undefined) return;
      yield value;
    }
  } finally {
    // Left before its end, or broken: nobody reads the rest, and the connection is free. Who made the body may never say so.
    if (!isDone) void reader.cancel().catch(() => undefined);
    reader.releaseLock();
  }
}

/** The call is over by its signal, also where what it waits for does not know the signal. */
export function unlessAborted<T>(asked: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal?.reason as Error);
    if (signal?.aborted === true) abort();
    signal?.addEventListener("abort", abort);
    Promise.resolve(asked)
      .finally(() => signal?.removeEventListener("abort", abort))
      .then(resolve, reject);
  });
}
