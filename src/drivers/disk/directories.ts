// Makes a directory and those above it. Not by Node's own `recursive`: where the kernel says of a new name that it does not exist,
// as /proc does, Node makes the parent, which is there, and tries again, for ever, with nothing said.

import { mkdirSync } from "node:fs";
import { dirname } from "node:path";

/** Returns the first that it had to make; undefined where all were there. Throws what the system says of the one that can't be made. */
export function makeDirectories(path: string, mode: number): string | undefined {
  try {
    return make(path, mode);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || dirname(path) === path) throw error;
  }
  const above = makeDirectories(dirname(path), mode);
  const made = make(path, mode);
  return above ?? made;
}

function make(path: string, mode: number): string | undefined {
  try {
    mkdirSync(path, { mode });
    return path;
  } catch (error) {
    // A file of that name is for the caller to find.
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return undefined;
    throw error;
  }
}
