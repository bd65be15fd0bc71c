// A line over the views where the page can't reach all of the cluster by itself: what is seen from there, and what is not.

import { alone, blocked } from "./nodes.ts";

export function ReachBanner() {
  if (alone.value === null) return null;
  const { nodeId, urls } = alone.value;
  return (
    <p class="reach" id="reach" role="status">
      This page reaches <span class="theirs">{nodeId}</span> alone: the nodes call themselves{" "}
      <span class="theirs">{urls.join(", ") || "nothing"}</span>, and let in pages that were opened there. What is shown
      of the others is what {nodeId} says. {blocked.value}
    </p>
  );
}
