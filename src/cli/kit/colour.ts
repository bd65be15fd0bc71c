// Colours of a terminal: who gets them, and which few things have one. Pure: the stream's nature and the environment are passed
// in, and each stream decides for itself, so that `tenure job list | less` is plain while its complaints are not.
//
//   NO_COLOR (not empty)                  never              https://no-color.org
//   FORCE_COLOR (not empty, not 0), CLICOLOR_FORCE (the same)   always, also into a pipe
//   otherwise                             on a terminal, unless TERM is dumb

type Environment = Readonly<Record<string, string | undefined>>;

const CODES = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const;

export type Colour = keyof typeof CODES;

/** Gives the text back, coloured or as it is. */
export type Paint = (colour: Colour | null, text: string) => string;

export const PLAIN: Paint = (_colour, text) => text;

const COLOURED: Paint = (colour, text) => {
  if (colour === null || text === "") return text;
  const [on, off] = CODES[colour];
  return `\u001B[${on}m${text}\u001B[${off}m`;
};

export function paintFor(stream: { readonly isTTY?: boolean | undefined }, environment: Environment): Paint {
  return wantsColour(stream.isTTY === true, environment) ? COLOURED : PLAIN;
}

function wantsColour(isTerminal: boolean, environment: Environment): boolean {
  if (isSet(environment["NO_COLOR"])) return false;
  if ([environment["FORCE_COLOR"], environment["CLICOLOR_FORCE"]].some((value) => isSet(value) && value !== "0")) {
    return true;
  }
  return isTerminal && environment["TERM"] !== "dumb";
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== "";
}

/** How many places a text takes: those that only colour it take none. */
export function visibleLength(text: string): number {
  // oxlint-disable-next-line no-control-regex -- it is what is looked for
  return text.replaceAll(/\u001B\[\d+m/g, "").length;
}

const STATES: Readonly<Record<string, Colour>> = {
  // Of jobs.
  pending: "yellow",
  assigned: "cyan",
  building: "cyan",
  cancelling: "yellow",
  completed: "green",
  failed: "red",
  cancelled: "dim",
  // Of agents and queues.
  online: "green",
  draining: "yellow",
  offline: "red",
  paused: "yellow",
  // Of nodes: role and health.
  leader: "bold",
  ok: "green",
  unresponsive: "red",
  unauthenticated: "red",
  // Of scopes.
  held: "green",
  stale: "red",
  // Of alerts, and of what the doctor found.
  warning: "yellow",
  critical: "red",
  PROBLEM: "red",
};

/** A state or a role in its colour; what is as one expects has none. */
export function paintState(state: string, paint: Paint): string {
  return paint(Object.hasOwn(STATES, state) ? STATES[state]! : null, state);
}
