// The frame: a way past it for keyboards, the status bar, the views, the drawer of events.

import { useEffect } from "preact/hooks";
import { assertNever } from "../../src/contract/errors.ts";
import { VIEWS, type ViewName } from "./address.ts";
import { ClusterPage } from "./cluster-view.tsx";
import { EventsDrawer, isDrawerOpen } from "./events-drawer.tsx";
import { hasIslands, IslandsPage } from "./islands-view.tsx";
import { JobsPage } from "./jobs-view.tsx";
import { KeyForm } from "./key-form.tsx";
import { goneSinceMs, isOpen, leadership, reader } from "./nodes.ts";
import { address, key } from "./page.ts";
import { Link } from "./parts.tsx";
import { ReachBanner } from "./reach-banner.tsx";
import { ScopesPage } from "./scopes-view.tsx";
import { SitesPage } from "./sites-view.tsx";
import { StatusBar } from "./status-bar.tsx";
import { Talk } from "./talk.tsx";
import { ValuesPage } from "./values-view.tsx";
import { titleText } from "./words.ts";
import { WorkPage } from "./work-view.tsx";

const NAMES: Readonly<Record<ViewName, string>> = {
  cluster: "Cluster",
  jobs: "Jobs",
  work: "Agents and queues",
  scopes: "Scopes",
  values: "Values",
  sites: "Sites",
  islands: "Islands",
};

/** Islands only where there are others. */
function isListed(view: ViewName): boolean {
  return view !== "islands" || hasIslands.value || address.value.view === view;
}

export function App() {
  const title = titleText(NAMES[address.value.view], leadership.value.leader, goneSinceMs.value !== null);
  useEffect(() => {
    document.title = title;
  }, [title]);
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        To the content
      </a>
      <header>
        <StatusBar />
        <nav aria-label="Views" class="views">
          {VIEWS.filter(isListed).map((view) => (
            <Link key={view} to={{ view, job: "", cursor: "" }} current={address.value.view === view}>
              {NAMES[view]}
            </Link>
          ))}
          {key.value !== "" && (
            <button type="button" class="quiet forget" onClick={() => (key.value = "")}>
              Forget key
            </button>
          )}
        </nav>
      </header>
      <main id="main" tabIndex={-1} class={isDrawerOpen.value ? "above" : ""}>
        <KeyForm />
        <ReachBanner />
        {isOpen.value && <View key={reader.value} view={address.value.view} />}
      </main>
      {isOpen.value && <EventsDrawer />}
      <Talk />
    </>
  );
}

/** Not by its #main: what is after a # may be a key, and is taken out of the address. */
function skip(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>("#main")?.focus();
}

function View({ view }: { readonly view: ViewName }) {
  switch (view) {
    case "cluster":
      return <ClusterPage />;
    case "jobs":
      return <JobsPage />;
    case "work":
      return <WorkPage />;
    case "scopes":
      return <ScopesPage />;
    case "values":
      return <ValuesPage />;
    case "sites":
      return <SitesPage />;
    case "islands":
      return <IslandsPage />;
    default:
      return assertNever(view, "view");
  }
}
