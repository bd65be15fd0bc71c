// How the dashboard is built: one script, one style sheet, nothing inline (the content security policy forbids it), and
// names that change with the content, so that browsers may keep them for ever.

import { defineConfig } from "vite";

export default defineConfig({
  root: import.meta.dirname,
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2023",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    reportCompressedSize: false,
    emptyOutDir: true,
  },
});
