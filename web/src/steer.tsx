// A button that changes something for others. It asks first, unless it only takes back what another did; it can't be pressed
// while its request runs, nor where the leader is out of reach, and then says why. It keeps the focus meanwhile: a button that
// is disabled outright would lose it, and its reason could not be read with the keyboard.

import { blocked } from "./nodes.ts";
import { act, askFirst, running } from "./talk.tsx";

interface SteerProps {
  readonly text: string;
  /** What it is called where several have the same text. */
  readonly name?: string | undefined;
  readonly ask?: { readonly title: string; readonly text: string; readonly verb: string } | undefined;
  /** Says what was done. */
  readonly act: () => Promise<string>;
}

export function Steer({ text, name = text, ask, act: doing }: SteerProps) {
  const isRunning = running.value.has(name);
  const isOff = isRunning || blocked.value !== null;
  const press = (): void => {
    if (isOff) return;
    const wanted = { name, act: doing };
    if (ask === undefined) void act(wanted);
    else askFirst({ ...ask, ...wanted });
  };
  return (
    <button
      type="button"
      aria-label={name}
      aria-disabled={isOff}
      aria-busy={isRunning}
      {...(blocked.value === null ? {} : { title: blocked.value, "aria-description": blocked.value })}
      onClick={press}
    >
      {text}
    </button>
  );
}
