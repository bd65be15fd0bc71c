// A question before what can't be undone. Where nobody is at a keyboard, the flag that answers it has to be given: that is looked at first, before
// any server is asked.

import { UsageError } from "./flags.ts";

/** `costs`: what it may cost. `flag`: what says yes without a question. */
export function checkCanAsk(costs: string, flag: string): void {
  if (!process.stdin.isTTY) throw new UsageError(`${costs}. Give ${flag} if that is what you want`);
}

/** `question`: whole sentences. */
export async function confirmed(question: string): Promise<boolean> {
  process.stderr.write(`${question}\nType yes to go on: `);
  for await (const line of process.stdin as AsyncIterable<Uint8Array>)
    return new TextDecoder().decode(line).trim() === "yes";
  return false;
}
