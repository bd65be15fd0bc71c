// For `node --import`: connections to the ports of the query go to other ports of 127.0.0.1, each to a proxy that belongs to this process alone. So the
// way from one server to another can be cut while everybody else still reaches both (dial-through.ts?17001=18001&17002=18002).

import { Socket } from "node:net";

const through = new Map(
  [...new URL(import.meta.url).searchParams].map(([port, proxy]) => [Number(port), Number(proxy)]),
);

interface Dialled {
  host?: string;
  port?: number | string;
}

/** Node's own modules pass [options, callback] as one list; everybody else passes them one by one. */
type Connect = (this: Socket, ...args: unknown[]) => Socket;

const prototype = Socket.prototype as unknown as { connect: Connect };
const { connect } = prototype;
prototype.connect = function redirected(...args) {
  const first = args[0];
  const options = (Array.isArray(first) ? first[0] : first) as Dialled | undefined;
  const proxy = through.get(Number(options?.port));
  if (options?.host === "127.0.0.1" && proxy !== undefined) options.port = proxy;
  return Reflect.apply(connect, this, args);
};
