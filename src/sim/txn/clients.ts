// Who asks for transactions: each client draws one after the other, sends it to some node, and repeats it there or elsewhere under the same id until it
// is answered for good. Now and then it asks two nodes at once, and sometimes for something else under the same id.

import type { Random } from "../../core/kit/random.ts";
import type { TenureError } from "../../core/kit/errors.ts";
import type { TxnAnswer } from "../../core/txn/model.ts";
import type { TxnDecide } from "../../ports/transactions.ts";
import { type Owner, WALL_START_MS } from "../kernel/index.ts";
import { Drawing, type Drawn } from "./drawing.ts";
import type { Asked, BodyKind } from "./oracle/bodies.ts";
import type { Answer } from "./post.ts";
import type { TxnServer } from "./island.ts";
import type { TxnStage } from "./stage.ts";
import { TXN_ANSWER_MS, TXN_CALLS_MAX, TXN_SIM_STAGED_FOR_MS } from "./limits.ts";
import { weighted } from "../kernel/index.ts";
import { uuidOf } from "./uuid.ts";

const KINDS = weighted<Exclude<BodyKind, "probe" | "conflicting">>({
  transfer: 6,
  inside: 2,
  move: 4,
  fenced: 4,
  staged: 2,
  jobs: 3,
  mixed: 2,
});
const TWICE_AT_ONCE_RATE = 0.15;
const AGAIN_MS: readonly [number, number] = [50, 1_500];
/** After these nothing comes of it that has not come of it before. */
const DEFINITE = new Map<string, Parameters<Errand["done"]>[0]>([
  ["txn_conflict", "refused"],
  ["txn_fanout_failed", "rolled-back"],
  // Home has forgotten it: nobody knows, and asking again does not help.
  ["txn_expired", "unknown"],
]);

interface Errand {
  readonly asked: Asked;
  readonly body: Drawn;
  readonly random: Random;
  readonly done: (state: "committed" | "rolled-back" | "unknown" | "refused") => void;
  calls: number;
  /** Of the last call. */
  call: number;
  isOver: boolean;
  isUnknown: boolean;
}

export class Clients {
  /** What clients gave up on. */
  readonly unknown: Asked[] = [];
  readonly counts = { committed: 0, "rolled-back": 0, unknown: 0, refused: 0 };
  readonly #stage: TxnStage;
  readonly #drawing: Drawing;
  readonly #owner: Owner;
  #isStopped = false;
  #running = 0;

  constructor(stage: TxnStage) {
    this.#stage = stage;
    this.#drawing = new Drawing(stage, stage.random.fork("drawing"));
    this.#owner = stage.world.scheduler.owner("clients");
  }

  get isIdle(): boolean {
    return this.#running === 0;
  }

  start(): void {
    for (let at = 0; at < this.#stage.knobs.clients; at++) this.#next(this.#stage.random.fork(`client/${at}`), 2_500);
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** One over all islands, with nobody in its way. */
  probe(random: Random, done: Errand["done"]): void {
    const drawn = this.#drawing.draw("probe", this.#stage.ledger.nextBody);
    if (drawn === null) return done("refused");
    const asked = this.#ask("probe", this.#newId(random), drawn);
    this.#send({ asked, body: drawn, random, done, calls: 0, call: 0, isOver: false, isUnknown: false });
  }

  #next(random: Random, afterMs: number): void {
    this.#later(afterMs, () => {
      if (this.#isStopped) return;
      if (this.#stage.founding.isDone) this.#begin(random);
      this.#next(random, random.between(0.3, 1.7) * this.#stage.knobs.clientPauseMs);
    });
  }

  #begin(random: Random): void {
    const kind = random.chance(this.#stage.knobs.conflictRate) ? "conflicting" : random.pick(KINDS);
    const drawn = this.#drawing.draw(kind, this.#stage.ledger.nextBody);
    if (drawn === null) return;
    const id = this.#newId(random);
    const asked = this.#ask(kind, id, drawn);
    const errand = this.#errand(asked, drawn, random.fork(`errand/${asked.number}`));
    if (kind === "staged") return this.#stageAll(errand);
    this.#send(errand);
    if (kind !== "conflicting") return;
    const other = this.#drawing.draw("transfer", this.#stage.ledger.nextBody);
    if (other === null) return;
    const second = this.#ask("conflicting", id, other);
    this.#send(this.#errand(second, other, random.fork(`errand/${second.number}`)));
  }

  #errand(asked: Asked, body: Drawn, random: Random): Errand {
    this.#running++;
    const done: Errand["done"] = (state) => {
      this.#running--;
      this.counts[state]++;
    };
    return { asked, body, random, done, calls: 0, call: 0, isOver: false, isUnknown: false };
  }

  #ask(kind: BodyKind, id: string, drawn: Drawn): Asked {
    return this.#stage.ledger.ask(kind, { ...drawn, id });
  }

  #newId(random: Random): string {
    const { skewed } = this.#stage;
    return uuidOf(WALL_START_MS + this.#stage.world.nowMs + skewed, random.fork(`id/${this.#stage.ledger.nextBody}`));
  }

  // ---- one call after the other --------------------------------------------------------------------

  #send(errand: Errand): void {
    if (errand.isOver) return;
    const { random } = errand;
    const call = ++errand.call;
    errand.calls++;
    this.#call(errand, call);
    if (random.chance(TWICE_AT_ONCE_RATE)) this.#call(errand, call);
    this.#later(TXN_ANSWER_MS, () => {
      if (errand.isOver || errand.call !== call) return;
      errand.isUnknown = true;
      this.#again(errand);
    });
  }

  #again(errand: Errand): void {
    if (errand.isOver) return;
    if (errand.calls >= TXN_CALLS_MAX) return this.#over(errand, "unknown");
    const call = ++errand.call;
    this.#later(errand.random.between(...AGAIN_MS), () => {
      if (!errand.isOver && errand.call === call) this.#send(errand);
    });
  }

  #over(errand: Errand, state: Parameters<Errand["done"]>[0]): void {
    if (errand.isOver) return;
    errand.isOver = true;
    if (state === "unknown") this.unknown.push(errand.asked);
    errand.done(state);
  }

  #call(errand: Errand, call: number): void {
    const { asked, random } = errand;
    if (asked.kind === "staged") return this.#decide(errand, call, "commit");
    const { ledger } = this.#stage;
    this.#stage.post({
      to: this.#node(random),
      ask: ({ decider }: TxnServer) =>
        decider.run({ ...errand.body, id: asked.id }, { by: "client", isForwarded: false }),
      judge: (node, answer) => {
        if (answer.ok) ledger.told(node, asked, answer.value);
        else ledger.refused(node, asked, answer.error);
        this.#stage.tell(
          node,
          `${asked.id} (${asked.kind} ${asked.number}): ${answer.ok ? answer.value.state : answer.error.code}`,
        );
      },
      arrived: (answer) => {
        if (answer.ok) this.#over(errand, answer.value.state);
        else this.#refused(errand, call, answer.error);
      },
    });
  }

  #refused(errand: Errand, call: number, { code }: TenureError): void {
    const end = DEFINITE.get(code);
    if (end !== undefined) return this.#over(errand, end);
    if (errand.call === call) this.#again(errand);
  }

  #node(random: Random): string {
    const leader = this.#stage.coordinator?.name;
    return leader !== undefined && random.chance(0.6) ? leader : random.pick(this.#stage.names);
  }

  // ---- staged first --------------------------------------------------------------------------------

  #stageAll(errand: Errand): void {
    const { asked, random } = errand;
    let missing = asked.participants.size;
    const staged = (answer: Answer<TxnAnswer>): void => {
      if (answer.ok && answer.value.kind === "txn" && answer.value.phase === "staged") missing--;
      else if (answer.ok) this.#over(errand, "refused");
      if (missing === 0) this.#stagedAll(errand);
    };
    for (const [target, operations] of asked.participants) {
      const { id, home } = asked;
      const request = {
        kind: "stage",
        id,
        home,
        by: "client",
        operations,
        expiresInMs: TXN_SIM_STAGED_FOR_MS,
      } as const;
      this.#stage.post({
        to: random.pick(this.#stage.names),
        ask: ({ decider }) => decider.stage(target, request),
        arrived: staged,
      });
    }
    // One that is not staged anywhere is not decided: it expires.
    this.#later(TXN_ANSWER_MS, () => errand.calls === 0 && this.#over(errand, "unknown"));
  }

  #stagedAll(errand: Errand): void {
    const { random } = errand;
    if (errand.isOver || errand.calls > 0) return;
    if (random.chance(0.15)) {
      errand.calls++;
      this.#decide(errand, 0, "pending");
      return this.#over(errand, "unknown");
    }
    if (random.chance(0.15)) {
      errand.calls++;
      this.#decide(errand, 0, "rollback");
      return this.#over(errand, "unknown");
    }
    this.#send(errand);
  }

  #decide(errand: Errand, call: number, state: TxnDecide["state"]): void {
    const { asked, random } = errand;
    const { ledger } = this.#stage;
    const request: TxnDecide = {
      id: asked.id,
      home: asked.home,
      state,
      participants: [...asked.participants.keys()],
      expiresAtMs: null,
    };
    this.#stage.post({
      to: this.#node(random),
      ask: ({ decider }: TxnServer) => decider.decide(request, { by: "client", isForwarded: false }),
      judge: (node, answer) => {
        if (answer.ok) ledger.toldDecided(node, asked, answer.value.state);
        else ledger.refused(node, asked, answer.error);
      },
      arrived: (answer) => {
        if (answer.ok && answer.value.state !== "pending")
          this.#over(errand, answer.value.state === "commit" ? "committed" : "rolled-back");
        else if (!answer.ok) this.#refused(errand, call, answer.error);
      },
    });
  }

  #later(afterMs: number, fire: () => void): void {
    const { scheduler, nowMs } = this.#stage.world;
    scheduler.schedule(nowMs + afterMs, this.#owner, fire);
  }
}
