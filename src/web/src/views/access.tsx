/** Who may use the daemon: keys. */
import { useEffect } from "preact/hooks";
import { Keys } from "./access/keys";
import "../styles/tiles.css";
import "../styles/dialog.css";
import "./access/access.css";

export function Access() {
  useEffect(() => {
    document.title = "Access · Granary";
  }, []);
  return (
    <div class="access-view">
      <div class="head">
        <h1>Access</h1>
      </div>
      <Keys />
    </div>
  );
}
