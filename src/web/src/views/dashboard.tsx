/** A dashboard: found by its name in the address, shown, and edited. */
import { useEffect } from "preact/hooks";
import { api } from "../api/client";
import { useResource } from "../api/resource";
import { address } from "../app/address";
import { Failed, Loading } from "../parts/states";
import "../styles/dashboard.css";
import "../styles/explore.css";
import { Board } from "./dashboard/board";

export function DashboardView() {
  const name = address.value.path.split("/")[2] ?? "";
  const { data, error, reload } = useResource(name, (signal) => api.dashboard(name, signal)).value;
  useEffect(() => {
    document.title = `${name} · Granary`;
  }, [name]);
  // What was loaded for another name is not shown for this one.
  if (data?.name === name) {
    return <Board key={`${name} ${data.version}`} loaded={data} onReload={reload} />;
  }
  if (!error) return <Loading what="the dashboard" />;
  return (
    <Failed message={error.status === 404 ? `No dashboard is called ${name}.` : error.message}>
      {error.status === 404 ? (
        <a class="button" href="/dashboards">
          All dashboards
        </a>
      ) : (
        <button type="button" class="button" onClick={reload}>
          Try again
        </button>
      )}
    </Failed>
  );
}
