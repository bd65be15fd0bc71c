// Endpoints that are not what they should be: nothing acts, and the message says what to do.

import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTcpServer, type AddressInfo, type Server as TcpServer } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { TenureError } from "../../src/entry/index.ts";
import { freePort } from "../servers/index.ts";
import { freshScope, never, quickEtcd, seatAt } from "./test-seat.ts";

async function listening(server: Server | TcpServer): Promise<string> {
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(() => {
    server.close();
    if ("closeAllConnections" in server) server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function answering(listener: RequestListener): Promise<string> {
  return listening(createServer(listener));
}

async function refusal(endpoints: string, options: object = {}): Promise<TenureError> {
  const { seat, losses } = seatAt(quickEtcd(endpoints, options), freshScope());
  const error: unknown = await seat.acquire(never).then(
    () => new Error("it won"),
    (reason: unknown) => reason,
  );
  expect(losses).toEqual([]);
  if (!TenureError.is(error)) throw error;
  return error;
}

describe("an endpoint", () => {
  test("that refuses connections is unavailable, and the port is in doubt", async () => {
    const error = await refusal(`http://user:secret@127.0.0.1:${await freePort()}`);
    expect(error).toMatchObject({ code: "BACKEND_UNAVAILABLE", retryable: true });
    expect(error.message).toMatch(/nothing listens there.*2379/);
    expect(error.message).not.toContain("secret");
  });

  test("whose name is unknown is unavailable, and DNS is in doubt", async () => {
    const error = await refusal("http://no-such-host.invalid:2379");
    expect(error.code).toBe("BACKEND_UNAVAILABLE");
    expect(error.message).toMatch(/DNS/);
  });

  test.each([
    ["a web page", "text/html", "<html><body>It works!</body></html>"],
    ["JSON of another kind", "application/json", '{"status":"ok"}'],
    ["a list", "application/json", "[]"],
    ["a lease that is no number", "application/json", '{"header":{"revision":"1"},"ID":"x"}'],
    ["nothing but a header", "application/json", '{"header":{"revision":"1","raft_term":"1"}}'],
  ])("that answers with %s is not etcd", async (_what, type, body) => {
    const error = await refusal(await answering((_, response) => response.setHeader("content-type", type).end(body)));
    expect(error).toMatchObject({ code: "BACKEND_UNSUPPORTED", retryable: false });
    expect(error.message).toMatch(/etcd's client port/);
  });

  test("that answers 404 is not etcd, or too old, or has its gateway off", async () => {
    const error = await refusal(await answering((_, response) => response.writeHead(404).end("Not Found")));
    expect(error.code).toBe("BACKEND_UNSUPPORTED");
    expect(error.message).toMatch(/HTTP 404.*3\.4 or newer.*enable-grpc-gateway/);
  });

  test("that is a proxy without its etcd is unavailable", async () => {
    const error = await refusal(await answering((_, response) => response.writeHead(503).end("<html>")));
    expect(error).toMatchObject({ code: "BACKEND_UNAVAILABLE", retryable: true });
  });

  test("that is a proxy which wants credentials says so", async () => {
    const error = await refusal(await answering((_, response) => response.writeHead(401).end()));
    expect(error.code).toBe("PERMISSION_DENIED");
    expect(error.message).toMatch(/headers/);
  });

  test("that speaks no HTTP is not etcd", async () => {
    const greeting = createTcpServer((socket) => {
      socket.on("error", () => undefined);
      socket.end("SSH-2.0-OpenSSH_9.2\r\n");
    });
    const error = await refusal(await listening(greeting));
    expect(error.code).toBe("BACKEND_UNSUPPORTED");
    expect(error.message).toMatch(/not HTTP/);
  });

  test("that accepts and never answers is unavailable within the request's time", async () => {
    const startedMs = performance.now();
    const error = await refusal(await answering(() => undefined));
    expect(error).toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    expect(error.message).toMatch(/did not answer within 750 ms/);
    expect(performance.now() - startedMs).toBeLessThan(5_000);
  });

  test("that answers without an end is cut off", async () => {
    const endless = await answering((_, response) => {
      const chunk = Buffer.alloc(1024 * 1024, "x");
      let open = true;
      response.once("close", () => {
        open = false;
      });
      const write = (): void => {
        if (open) response.write(chunk, () => setImmediate(write));
      };
      write();
    });
    const error = await refusal(endless, { ttlSeconds: 60 });
    expect(error.code).toBe("BACKEND_UNSUPPORTED");
    expect(error.message).toMatch(/more than 16777216 bytes/);
  });

  test("that speaks no TLS is told from one that does", async () => {
    const plain = await answering((_, response) => response.end());
    const error = await refusal(plain.replace("http:", "https:"));
    expect(error.code).toBe("BACKEND_UNSUPPORTED");
    expect(error.message).toMatch(/http:\/\/ instead/);
  });
});
