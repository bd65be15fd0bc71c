// What a view has loaded: asked for when it is opened, again when an event says that it has changed and every few seconds,
// one request at a time and never more than a few in a second. What fails leaves what is on the screen, and says so.

import type { ReadonlySignal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { isVisible } from "./page.ts";

const AT_MOST_EVERY_MS = 600;
const AT_LEAST_EVERY_MS = 5_000;

export interface Loaded<T> {
  /** Of this or, until it is there, of the last question; undefined at first. */
  readonly data: T | undefined;
  readonly error: string | null;
  /** The data belongs to another question than is asked now. */
  readonly isStale: boolean;
  /** Now, for what the reader has changed. */
  readonly again: () => void;
}

interface Kept<T> {
  readonly question: string;
  readonly data: T | undefined;
  readonly error: string | null;
}

/** `question` names what is asked: another one is asked at once. */
export function useLoaded<T>(
  question: string,
  ask: (signal: AbortSignal) => Promise<T>,
  changed?: ReadonlySignal<number>,
): Loaded<T> {
  const [kept, setKept] = useState<Kept<T>>({ question, data: undefined, error: null });
  const again = useRef<() => void>(() => undefined);
  useEffect(() => {
    const over = new AbortController();
    let isAsking = false;
    let isWanted = false;
    let askedAtMs = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let timerAtMs = Number.POSITIVE_INFINITY;
    const lookIn = (ms: number): void => {
      const atMs = performance.now() + ms;
      if (timerAtMs <= atMs) return;
      clearTimeout(timer);
      timerAtMs = atMs;
      timer = setTimeout(() => void look(), ms);
    };
    const look = async (): Promise<void> => {
      clearTimeout(timer);
      timerAtMs = Number.POSITIVE_INFINITY;
      if (isAsking) {
        isWanted = true;
        return;
      }
      if (!isVisible.peek()) return lookIn(AT_MOST_EVERY_MS);
      isAsking = true;
      isWanted = false;
      askedAtMs = performance.now();
      try {
        const data = await ask(over.signal);
        if (!over.signal.aborted) setKept({ question, data, error: null });
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        if (!over.signal.aborted) setKept((before) => ({ ...before, question, error: message }));
      }
      isAsking = false;
      if (!over.signal.aborted) lookIn(isWanted ? AT_MOST_EVERY_MS : AT_LEAST_EVERY_MS);
    };
    const soon = (): void => {
      if (isAsking) isWanted = true;
      else lookIn(Math.max(0, askedAtMs + AT_MOST_EVERY_MS - performance.now()));
    };
    again.current = () => void look();
    void look();
    const stop = changed?.subscribe(soon);
    return () => {
      over.abort();
      clearTimeout(timer);
      stop?.();
    };
  }, [question]);
  return { data: kept.data, error: kept.error, isStale: kept.question !== question, again: () => again.current() };
}
