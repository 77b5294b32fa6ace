/** Starts the page. */
import { render } from "preact";
import { followAddress } from "./app/address";
import { keepPreferences } from "./app/preferences";
import { Shell } from "./app/shell";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/controls.css";
import "./styles/chart.css";

keepPreferences();
followAddress();
const page = document.getElementById("page");
if (page) render(<Shell />, page);
