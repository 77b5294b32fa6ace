/** Starts the page. */
// First, because styles of parts and views override these.
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/controls.css";
import "./styles/chart.css";
import { render } from "preact";
import { address, handleNavigation } from "./app/address";
import { escapeAllTexts } from "./app/harmless";
import { applyAndStorePreferences } from "./app/preferences";
import { Shell } from "./app/shell";
import { viewOf } from "./app/views";

/** The first drawing includes the view; a slower view shows its loading state. */
const PATIENCE_MS = 150;

escapeAllTexts();
applyAndStorePreferences();
handleNavigation();
const page = document.getElementById("page");
const patience = new Promise((resolve) => setTimeout(resolve, PATIENCE_MS));
const start = viewOf(address.peek().path).start();
void Promise.race([start, patience]).then(() => {
  if (page) render(<Shell />, page);
});
