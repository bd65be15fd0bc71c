// The nodes, watched: each is asked for its role several times a second and for its view of the cluster every few seconds, or
// when something has changed. They are asked independently, so one that is frozen holds nobody up.
//
// Where it may go: to the node that served the page, and to the members that this one names. The key goes nowhere else.

import { computed, effect, signal, untracked } from "@preact/signals";
import type { ClusterView } from "../../src/client/index.ts";
import { toCamel } from "../../src/contract/snake-case.ts";
import { elections, forgetElections, keep } from "./election-memory.ts";
import { type Access, accessOf, type Leadership, leadershipOf, type Look, UNSEEN } from "./leadership.ts";
import { isVisible, key } from "./page.ts";
import { mayConnect } from "./policy.ts";
import { aloneOf, blockedText } from "./reach.ts";
import { ApiError, ask, bodyAt, errorIn, READ_LIMIT_MS, readAt, textAt } from "./request.ts";
import { lookedAway, NOTHING_SEEN, sawLeader, sawNobody, type Seen } from "./seen.ts";
import { timelineOf } from "./timeline.ts";

const LOOK_EVERY_MS = 250;
/** While nobody leads. */
const LOOK_SOON_MS = 80;
/** One that does not answer is asked less and less often, down to this. */
const LOOK_LATE_MS = 1_500;
const LOOK_LIMIT_MS = 1_500;
const CLUSTER_EVERY_MS = 1_000;
const MEMBERS_MAX = 32;

const looks = signal<readonly Look[]>([{ url: location.origin, ...UNSEEN }]);
/** The page's own node first. */
export const nodes = computed(() => looks.value);
/** Whether the servers let this reader in. */
export const access = computed<Access>(() => accessOf(looks.value));
export const isOpen = computed(() => access.value.kind === "open");
export const leadership = computed<Leadership>(() => leadershipOf(looks.value));
export const alone = computed(() => aloneOf(looks.value));
/** Why nothing can be changed from here; null: it can. */
export const blocked = computed(() => blockedText(looks.value, leadership.value));
export const hasLooked = computed(() => looks.value.some(({ isReached, why }) => isReached || why !== null));

/** The view that says most: the leader's, or that of the node that is read from. */
export const cluster = computed<ClusterView | null>(() => {
  const { leader } = leadership.value;
  const views = looks.value.flatMap((look) => (look.cluster === null ? [] : [{ look, view: look.cluster }]));
  const alive = views.filter(({ look }) => look.isReached);
  const best = alive.find(({ look }) => look.nodeId === leader) ?? alive[0] ?? views[0];
  return best?.view ?? null;
});
/** The last in which somebody led. */
export const lastEpoch = signal<number | null>(null);

const seen = signal<Seen>(NOTHING_SEEN);
/** Since when nobody leads, as this page saw it; the wall clock. Null: somebody does, or nothing is known yet. */
export const goneSinceMs = computed(() => seen.value.goneSinceMs);
export const timeline = computed(() => timelineOf(elections.value, seen.value));

export function start(): void {
  effect(() => {
    const { leader, epoch } = leadership.value;
    if (epoch !== null) lastEpoch.value = epoch;
    if (leader !== null && epoch !== null) seen.value = sawLeader(seen.peek(), leader, epoch, Date.now());
    else if (leader === null && hasLooked.value && isOpen.value) seen.value = sawNobody(seen.peek(), Date.now());
  });
  effect(() => {
    if (isVisible.value) return;
    // What the nodes said before is old when the page is looked at again.
    looks.value = looks.peek().map((look) => ({ ...look, isReached: false, why: null }));
    seen.value = lookedAway(seen.peek());
  });
  let before = key.peek();
  effect(() => {
    const isShut = !isOpen.value;
    const hasChanged = key.value !== before;
    before = key.value;
    if (hasChanged || isShut) untracked(forget);
  });
  watch(location.origin);
}

/** Grows when what was loaded is to be forgotten: with another key, or none that is taken. */
export const reader = signal(0);

function forget(): void {
  looks.value = looks.value.map(({ url, refused }) => ({ ...UNSEEN, url, refused }));
  seen.value = NOTHING_SEEN;
  lastEpoch.value = null;
  forgetElections();
  reader.value++;
}

const watched = new Set<string>();
const wakers = new Map<string, () => void>();

function watch(url: string): void {
  if (watched.has(url) || watched.size >= MEMBERS_MAX) return;
  watched.add(url);
  if (!looks.value.some((look) => look.url === url)) looks.value = [...looks.value, { url, ...UNSEEN }];
  void keepLooking(url);
}

async function keepLooking(url: string): Promise<never> {
  let clusterAtMs = Number.NEGATIVE_INFINITY;
  let misses = 0;
  for (;;) {
    const asked = reader.value;
    if (isVisible.value) {
      const before = lookOf(url);
      const look = await lookAt(url, before);
      const hasChanged =
        look.epoch !== before.epoch || look.leaderId !== before.leaderId || look.isReached !== before.isReached;
      const isDue = hasChanged || performance.now() - clusterAtMs > CLUSTER_EVERY_MS;
      if (look.isReached && isDue && isOpen.value) {
        clusterAtMs = performance.now();
        put({ ...look, cluster: (await viewOf(url)) ?? look.cluster }, asked);
      } else put(look, asked);
      misses = look.isReached ? 0 : misses + 1;
      // One that has gone may have been the leader: the others know who is.
      if (before.isReached && !look.isReached) wakeAll();
    }
    // Asked for another reader than there is now.
    if (asked !== reader.value) continue;
    const everyMs = leadership.value.leader === null ? LOOK_SOON_MS : LOOK_EVERY_MS;
    await rest(url, Math.min(LOOK_LATE_MS, everyMs * 2 ** Math.min(misses, 8)));
  }
}

async function lookAt(url: string, before: Look): Promise<Look> {
  const hasKey = key.value !== "";
  try {
    const response = await ask(url, "/role", LOOK_LIMIT_MS);
    if (response.ok) {
      const body = toCamel(await response.json()) as RoleBody;
      const behind = response.headers.get("x-tenure-staleness-ms");
      const clusterId = response.headers.get("x-tenure-cluster");
      const own = lookOf(location.origin).clusterId;
      if (typeof body.nodeId !== "string" || clusterId === null)
        return lost(before, "answers, but not as a Tenure server");
      // Epochs of two clusters do not compare.
      if (url !== location.origin && own !== null && own !== clusterId) return lost(before, "is of another cluster");
      return {
        ...before,
        isReached: true,
        why: null,
        refused: null,
        clusterId,
        nodeId: body.nodeId,
        role: body.role,
        leaderId: body.leaderId,
        epoch: body.leaderEpoch,
        stalenessMs: behind === null ? null : Number(behind),
      };
    }
    const { message } = await errorIn(response);
    const isRefused = response.status === 401 || response.status === 403;
    const kind = hasKey ? "refused" : "needed";
    return { ...lost(before, message), refused: isRefused ? { kind, message } : before.refused };
  } catch (error) {
    const why =
      error instanceof DOMException && error.name === "TimeoutError" ? "no answer in time" : "can't be reached";
    return lost(before, why);
  }
}

function lost(before: Look, why: string): Look {
  return { ...before, isReached: false, why };
}

interface RoleBody {
  readonly nodeId: string;
  readonly role: "LEADER" | "STANDBY" | "DRAINING";
  readonly leaderId: string | null;
  readonly leaderEpoch: number | null;
}

async function viewOf(url: string): Promise<ClusterView | null> {
  try {
    const response = await ask(url, "/v1/cluster", LOOK_LIMIT_MS);
    if (!response.ok) return null;
    const view = toCamel(await response.json()) as unknown as ClusterView;
    if (!Array.isArray(view.members) || !Array.isArray(view.elections)) return null;
    // What only another member says is not believed: the page's own node names the members.
    if (url === location.origin)
      for (const member of view.members) if (member.nodeId !== view.nodeId) void learn(member.url);
    return view;
  } catch {
    return null;
  }
}

/** A page that came over TLS sends its key nowhere without. */
async function learn(text: string | null): Promise<void> {
  if (text === null || !URL.canParse(text)) return;
  const url = new URL(text);
  if (!/^https?:$/.test(url.protocol) || (location.protocol === "https:" && url.protocol !== "https:")) return;
  if (await mayConnect(url.origin)) watch(url.origin + url.pathname.replace(/\/+$/, ""));
}

function lookOf(url: string): Look {
  return looks.value.find((look) => look.url === url) ?? { url, ...UNSEEN };
}

/** `asked`: for which reader. */
function put(look: Look, asked: number): void {
  if (!isVisible.value || asked !== reader.value) return;
  const told = look.cluster?.elections ?? [];
  if (told.length > 0 && look.cluster !== lookOf(look.url).cluster) {
    keep(look.cluster?.clusterId ?? "", told);
  }
  looks.value = looks.value.map((one) => (one.url === look.url ? look : one));
}

function rest(url: string, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const wake = (): void => {
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(wake, ms);
    wakers.set(url, wake);
  });
}

function wakeAll(): void {
  for (const wake of wakers.values()) wake();
}

/** Another key, or the page is looked at again: everybody is asked at once. */
effect(() => {
  void key.value;
  void isVisible.value;
  wakeAll();
});

/** What a node says no to, the others would too; but one that is stopping or lags speaks for itself only. */
const OWN_WORDS: ReadonlySet<string> = new Set([
  "BACKEND_UNAVAILABLE",
  "OVERLOADED",
  "TOO_STALE",
  "NOT_FOUND",
  "UNAUTHENTICATED",
  "CALLER_UNCONFIRMED",
]);

/** At the leader, which alone has what is asked for; where it is not reached, at whoever is. */
export async function readLeader<T>(path: string, ended?: AbortSignal): Promise<T> {
  const { leader } = leadership.value;
  const url = looks.value.find(({ nodeId, isReached }) => isReached && nodeId === leader)?.url;
  if (url === undefined) return await read<T>(path, ended);
  return await readAt<T>(url, path, READ_LIMIT_MS, ended);
}

/** A read at the node that is read from; where it does not answer, at the others. */
export function read<T>(path: string, ended?: AbortSignal): Promise<T> {
  return readWith((url) => readAt<T>(url, path, READ_LIMIT_MS, ended), ended);
}

/** The same as it is on the wire. */
export function readBody(path: string, ended?: AbortSignal): Promise<object> {
  return readWith((url) => bodyAt(url, path, READ_LIMIT_MS, ended), ended);
}

export function readText(path: string, ended?: AbortSignal): Promise<string> {
  return readWith((url) => textAt(url, path, READ_LIMIT_MS, ended), ended);
}

async function readWith<T>(readFrom: (url: string) => Promise<T>, ended: AbortSignal | undefined): Promise<T> {
  const reached = looks.value.filter(({ isReached }) => isReached).map(({ url }) => url);
  const urls = [...reached, ...looks.value.map(({ url }) => url).filter((url) => !reached.includes(url))];
  let last: Error = new ApiError("BACKEND_UNAVAILABLE", "No node answers.");
  for (const url of urls) {
    try {
      return await readFrom(url);
    } catch (error) {
      ended?.throwIfAborted();
      if (error instanceof ApiError && !OWN_WORDS.has(error.code)) throw error;
      last = error instanceof ApiError ? error : last;
    }
  }
  throw last;
}
