// A reader of server-sent events, as plain as they are: frames of lines.

import { request, type IncomingMessage } from "node:http";
import type { TestApi } from "./test-api.ts";

export interface Frame {
  readonly id: string | undefined;
  readonly event: string | undefined;
  readonly data: string | undefined;
  readonly comment: string | undefined;
  readonly point: string | undefined;
}

export class TestStream implements Disposable {
  readonly frames: Frame[] = [];
  status = 0;
  headers: IncomingMessage["headers"] = {};
  /** How it ended: "end" as it should, "cut" in the middle; null while it goes on. */
  ended: "end" | "cut" | null = null;
  #rest = "";
  #answer: IncomingMessage | undefined;

  /** Resolves when the headers are there. */
  open(t: Pick<TestApi, "port">, path: string, more: Record<string, string> = {}): Promise<this> {
    return new Promise((resolve, reject) => {
      const headers = { "x-api-key": "viewer-key", ...more };
      const sent = request({ port: t.port, host: "127.0.0.1", path, headers, agent: false }, (answer) => {
        this.#answer = answer;
        this.status = answer.statusCode ?? 0;
        this.headers = answer.headers;
        answer.setEncoding("utf8");
        answer.on("data", (text: string) => this.#take(text));
        answer.on("end", () => (this.ended ??= "end"));
        answer.on("error", () => (this.ended ??= "cut"));
        answer.on("close", () => (this.ended ??= "cut"));
        resolve(this);
      });
      sent.on("error", (error) => (this.#answer === undefined ? reject(error) : undefined));
      sent.end();
    });
  }

  /** With data: what a browser would show. */
  get shown(): Frame[] {
    return this.frames.filter(({ data }) => data !== undefined);
  }

  get ids(): number[] {
    return this.shown.map(({ id }) => Number(id));
  }

  /** Where a browser would resume. */
  get lastId(): string | undefined {
    return this.frames.findLast(({ id }) => id !== undefined)?.id;
  }

  /** What the SDK would bring back. */
  get points(): string[] {
    return this.frames.flatMap(({ point }) => point ?? []);
  }

  pause(): void {
    this.#answer?.pause();
  }

  resume(): void {
    this.#answer?.resume();
  }

  [Symbol.dispose](): void {
    this.#answer?.destroy();
  }

  #take(text: string): void {
    const parts = (this.#rest + text).split("\n\n");
    this.#rest = parts.pop() ?? "";
    for (const part of parts) {
      const lines = part.split("\n");
      const field = (name: string): string | undefined =>
        lines
          .find((line) => line.startsWith(`${name}:`))
          ?.slice(name.length + 1)
          .trim();
      this.frames.push({
        id: field("id"),
        event: field("event"),
        data: field("data"),
        comment: field(""),
        point: field("point"),
      });
    }
  }
}

export function openStream(t: TestApi, path: string, headers: Record<string, string> = {}): Promise<TestStream> {
  return new TestStream().open(t, path, headers);
}
