// The dashboard: starts its loops and draws itself.

import { render } from "preact";
import { App } from "./app.tsx";
import * as events from "./events.ts";
import * as nodes from "./nodes.ts";
import * as ownSite from "./own-site.ts";
import * as page from "./page.ts";

page.start();
nodes.start();
events.start();
ownSite.start();
const root = document.querySelector("#app");
if (root !== null) render(<App />, root);
