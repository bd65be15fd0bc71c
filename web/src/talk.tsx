// What the page asks its reader, and what it tells: a question before anything is changed, and one line of what came of it.

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

interface Question {
  readonly title: string;
  readonly text: string;
  readonly verb: string;
  readonly act: () => Promise<string>;
}

const question = signal<Question | null>(null);
const notice = signal<{ readonly text: string; readonly isBad: boolean } | null>(null);
const NOTICE_MS = 12_000;
let timer: ReturnType<typeof setTimeout> | undefined;

function tell(text: string, isBad: boolean): void {
  clearTimeout(timer);
  notice.value = { text, isBad };
  timer = setTimeout(() => (notice.value = null), NOTICE_MS);
}

/** `act` says what was done. */
export function askFirst(asked: Question): void {
  question.value = asked;
}

export async function act(doing: () => Promise<string>): Promise<void> {
  try {
    tell(await doing(), false);
  } catch (error) {
    tell(error instanceof Error ? error.message : String(error), true);
  }
}

export function Talk() {
  const dialog = useRef<HTMLDialogElement>(null);
  const asked = question.value;
  useEffect(() => {
    if (asked !== null) dialog.current?.showModal();
    else dialog.current?.close();
  }, [asked]);
  const answer = (isYes: boolean): void => {
    question.value = null;
    if (isYes && asked !== null) void act(asked.act);
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
          <button type="button" onClick={() => answer(false)}>
            Leave it
          </button>
        </div>
      </dialog>
    </>
  );
}
