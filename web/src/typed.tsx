// A field whose text gets into the page's URL.

import { useEffect, useState } from "preact/hooks";
import { go } from "./page.ts";

const TYPING_MS = 250;

interface TypedProps {
  readonly name: "search" | "kind" | "queue" | "prefix" | "entity";
  readonly label: string;
  readonly value: string;
}

/** What is typed gets into the URL when the reader pauses, so that not each letter is searched for. */
export function Typed({ name, label, value }: TypedProps) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return undefined;
    const timer = setTimeout(() => go({ [name]: text, cursor: "" }, "replace"), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <label class="field">
      <span>{label}</span>
      <input
        name={name}
        type="search"
        value={text}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => setText(event.currentTarget.value)}
      />
    </label>
  );
}
