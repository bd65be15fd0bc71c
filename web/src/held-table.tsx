// A list that holds still while the reader is in it, as a frame around any table: ten new rows a second would pull each row away from under
// the pointer.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { heldList, heldText } from "./held-list.ts";

interface Props<T> {
  readonly rows: readonly T[];
  /** They are the answer to the question before. */
  readonly isStale: boolean;
  /** Of a full page. */
  readonly pageSize: number;
  readonly draw: (rows: readonly T[]) => ComponentChildren;
}

export function HeldTable<T extends { readonly id: string }>({ rows, isStale, pageSize, draw }: Props<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [isPointed, setPointed] = useState(false);
  const [isFocused, setFocused] = useState(false);
  const [kept, setKept] = useState(rows);
  const isHeld = (isPointed || isFocused) && !isStale;
  useEffect(() => {
    if (!isHeld) setKept(rows);
  }, [isHeld, rows]);
  const held = heldList(isHeld ? kept : rows, rows);
  const text = heldText(held, held.newer >= pageSize);
  const show = (): void => {
    setKept(rows);
    // The button goes away, and the focus with it.
    box.current?.focus({ preventScroll: true });
  };
  return (
    <div
      ref={box}
      tabIndex={-1}
      class="held"
      onPointerEnter={() => setPointed(true)}
      onPointerLeave={() => setPointed(false)}
      onFocusIn={() => setFocused(true)}
      onFocusOut={({ relatedTarget }) => setFocused(box.current?.contains(relatedTarget as Node | null) === true)}
    >
      <p class="held-line">
        {text === null ? (
          <span class="hint">{isHeld ? "The list holds still while you are in it." : ""}</span>
        ) : (
          <button type="button" class="quiet" onClick={show}>
            {text}
          </button>
        )}
      </p>
      {draw(held.rows)}
    </div>
  );
}
