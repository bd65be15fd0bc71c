// Small parts that every view uses.

import type { ComponentChildren } from "preact";
import { type Address, formatAddress } from "./address.ts";
import { address, go } from "./page.ts";
import type { Tone } from "./words.ts";

export function Badge({ tone, text }: { readonly tone: Tone; readonly text: string }) {
  return <span class={`badge ${tone}`}>{text}</span>;
}

/** What went wrong with the last request; what was there before stays. */
export function Failed({ error }: { readonly error: string | null }) {
  if (error === null) return null;
  return (
    <p class="failed" role="status">
      {error}
    </p>
  );
}

/** The head of a table; the last column may hold buttons. */
export function Columns({ names, hasActions }: ColumnsProps) {
  return (
    <thead>
      <tr>
        {names.map((name) => (
          <th scope="col" key={name}>
            {name}
          </th>
        ))}
        {hasActions === true && (
          <th scope="col">
            <span class="unseen">Actions</span>
          </th>
        )}
      </tr>
    </thead>
  );
}

interface ColumnsProps {
  readonly names: readonly string[];
  readonly hasActions?: boolean | undefined;
}

/** A real link: it can be opened in a tab of its own, and copied. */
export function Link({ to, class: name, current, expanded, children }: LinkProps) {
  return (
    <a
      href={formatAddress({ ...address.value, ...to })}
      {...(name === undefined ? {} : { class: name })}
      {...(current === true ? { "aria-current": "page" as const } : {})}
      {...(expanded === undefined ? {} : { "aria-expanded": expanded })}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        go(to);
      }}
    >
      {children}
    </a>
  );
}

interface LinkProps {
  readonly to: Partial<Address>;
  readonly class?: string | undefined;
  readonly current?: boolean | undefined;
  /** Of one that opens something below it, and closes it again. */
  readonly expanded?: boolean | undefined;
  readonly children: ComponentChildren;
}
