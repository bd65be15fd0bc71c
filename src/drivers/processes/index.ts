// The door: processes of this machine, by their groups and by their families.

export { type Cookie, type Family, type FamilyEnd, familyMembers, killFamily } from "./family.ts";
export { AGENT_COOKIE, type ChildCommand, killControllers, nodeCookie, systemChildren } from "./children.ts";
export { childrenOf, livingMembers, signalGroup } from "./group.ts";
export { Keeper, type KeeperOptions } from "./keeper.ts";
export { openProcesses, type ProcessesOptions } from "./runner.ts";
