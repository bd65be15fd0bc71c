// A body, piece by piece. Written with a reader: not every browser can walk through a stream with `for await`.

export async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
  const reader = body.getReader();
  let isDone = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      isDone = done;
      if (value === undefined) return;
      yield value;
    }
  } finally {
    // Left before its end, or broken: nobody reads the rest, and the connection is free.
    if (!isDone) await reader.cancel().catch(() => undefined);
    reader.releaseLock();
  }
}
