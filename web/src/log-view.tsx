// What an attempt prints, as it comes. Only the end of a long log is kept; it is drawn a few times a second.

import { useEffect, useRef, useState } from "preact/hooks";
import { client } from "./events.ts";
import { plainLog } from "./words.ts";

const LETTERS_MAX = 200_000;
const DRAW_EVERY_MS = 250;

interface Shown {
  readonly text: string;
  readonly isCut: boolean;
  readonly state: "live" | "ended" | "failed";
  readonly error: string | null;
}

export function LogView({ id, attempt }: { readonly id: string; readonly attempt: number }) {
  const [shown, setShown] = useState<Shown>({ text: "", isCut: false, state: "live", error: null });
  const box = useRef<HTMLPreElement>(null);
  useEffect(() => {
    const over = new AbortController();
    let text = "";
    let isCut = false;
    let hasChanged = false;
    const draw = (state: Shown["state"], error: string | null): void => {
      hasChanged = false;
      setShown({ text, isCut, state, error });
    };
    const timer = setInterval(() => hasChanged && draw("live", null), DRAW_EVERY_MS);
    const follow = async (): Promise<void> => {
      try {
        for await (const piece of client.peek().logs(id, { follow: true, attempt, signal: over.signal })) {
          text += plainLog(piece.text);
          if (text.length > LETTERS_MAX) {
            text = text.slice(-LETTERS_MAX / 2);
            isCut = true;
          }
          hasChanged = true;
        }
        draw("ended", null);
      } catch (error) {
        if (!over.signal.aborted) draw("failed", error instanceof Error ? error.message : String(error));
      }
    };
    void follow();
    return () => {
      over.abort();
      clearInterval(timer);
    };
  }, [id, attempt]);
  // At the end it stays at the end; whoever has scrolled up reads on in peace.
  useEffect(() => {
    const pre = box.current;
    if (pre !== null && pre.scrollHeight - pre.scrollTop - pre.clientHeight < 200) pre.scrollTop = pre.scrollHeight;
  }, [shown.text]);
  return (
    <section aria-labelledby="log-title">
      <h3 id="log-title">
        Log of attempt {attempt} <span class="hint">{shown.state === "live" ? "live" : shown.state}</span>
      </h3>
      {shown.isCut && <p class="hint">Only the end is shown. All of it: tenure job logs {id}</p>}
      {shown.error !== null && <p class="failed">{shown.error}</p>}
      <pre ref={box} class="log theirs" tabIndex={0} aria-label={`Log of attempt ${attempt}`}>
        {shown.text === ""
          ? shown.state === "live"
            ? "Nothing was printed yet."
            : "Nothing was printed."
          : shown.text}
      </pre>
    </section>
  );
}
