// What the page asks its reader, and what it tells: a question before anything is changed, and one line of what came of it.

import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { reader } from "./nodes.ts";

interface Wanted {
  /** Of the button: it can't be pressed again until this is over. */
  readonly name: string;
  /** Says what was done. */
  readonly act: () => Promise<string>;
}

interface Question extends Wanted {
  readonly title: string;
  readonly text: string;
  readonly verb: string;
}

const question = signal<Question | null>(null);
const notice = signal<{ readonly text: string; readonly isBad: boolean } | null>(null);
/** The names of what is being done. */
export const running = signal<ReadonlySet<string>>(new Set());
const NOTICE_MS = 12_000;
let timer: ReturnType<typeof setTimeout> | undefined;

function tell(text: string, isBad: boolean): void {
  clearTimeout(timer);
  notice.value = { text, isBad };
  timer = setTimeout(() => (notice.value = null), NOTICE_MS);
}

/** What was said to another reader is not for this one. */
reader.subscribe(() => {
  question.value = null;
  notice.value = null;
});

export function askFirst(asked: Question): void {
  question.value = asked;
}

export async function act({ name, act: doing }: Wanted): Promise<void> {
  running.value = new Set([...running.value, name]);
  try {
    tell(await doing(), false);
  } catch (error) {
    tell(error instanceof Error ? error.message : String(error), true);
  }
  running.value = new Set([...running.value].filter((one) => one !== name));
}

export function Talk() {
  const dialog = useRef<HTMLDialogElement>(null);
  const safe = useRef<HTMLButtonElement>(null);
  const asked = question.value;
  useLayoutEffect(() => {
    if (asked === null) return dialog.current?.close();
    dialog.current?.showModal();
    // Whoever presses Enter once too often changes nothing.
    safe.current?.focus();
  }, [asked]);
  const answer = (isYes: boolean): void => {
    question.value = null;
    if (isYes && asked !== null) void act(asked);
  };
  return (
    <>
      <div
        class={`notice ${notice.value?.isBad === true ? "bad" : "good"}`}
        role="status"
        aria-live="polite"
        hidden={notice.value === null}
      >
        {notice.value?.text}
        <button type="button" class="quiet" onClick={() => (notice.value = null)}>
          Dismiss
        </button>
      </div>
      <dialog ref={dialog} aria-labelledby="question" onClose={() => (question.value = null)}>
        <h2 id="question">{asked?.title}</h2>
        <p>{asked?.text}</p>
        <div class="row">
          <button type="button" class="danger" onClick={() => answer(true)}>
            {asked?.verb}
          </button>
          <button type="button" ref={safe} onClick={() => answer(false)}>
            Leave it
          </button>
        </div>
      </dialog>
    </>
  );
}
