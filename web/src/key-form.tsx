// The door: asks for a key where the servers want one. It is kept in this tab, and forgotten with it.

import { useState } from "preact/hooks";
import { access } from "./nodes.ts";
import { key } from "./page.ts";

export function KeyForm() {
  const [text, setText] = useState("");
  const { value } = access;
  if (value.kind === "open") return null;
  return (
    <form
      class="card door"
      onSubmit={(event) => {
        event.preventDefault();
        key.value = text.trim();
        setText("");
      }}
    >
      <h2>{value.kind === "needed" ? "A key is needed" : "This key is not taken"}</h2>
      <p>{value.message}</p>
      <label class="field">
        <span>API key</span>
        <input
          id="key"
          type="password"
          autocomplete="off"
          spellcheck={false}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <p class="hint">
        A viewer's key shows everything; an operator's can also change it. Make one: tenure key create --help. It stays
        in this tab until you close it.
      </p>
      <button type="submit" disabled={text.trim() === ""}>
        Open
      </button>
    </form>
  );
}
