// Whether the session of a client of `pg` has ended. A pool listens only to its idle clients: the error of a client that is checked
// out, with nobody listening to it, ends the whole process (trap 78). Whoever takes one out asks here first.

/** Set for good as soon as the session's end is known. */
export interface SqlLife {
  hasEnded: boolean;
}

interface Client {
  on(event: "error" | "end", listener: () => void): unknown;
}

/** A client is lent often: its listeners are attached once, and stay. */
const lives = new WeakMap<Client, SqlLife>();

export function sqlLifeOf(client: Client): SqlLife {
  const known = lives.get(client);
  if (known !== undefined) return known;
  const life: SqlLife = { hasEnded: false };
  const end = (): void => {
    life.hasEnded = true;
  };
  client.on("error", end);
  client.on("end", end);
  lives.set(client, life);
  return life;
}

/** Before a statement is sent: whoever sends a COMMIT must know whether it can have arrived. */
export function mustLive(life: SqlLife): void {
  if (life.hasEnded) throw Object.assign(new Error("the connection has ended"), { unsent: true });
}
