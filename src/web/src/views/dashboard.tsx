/** The view of a dashboard, whose name is in the address. */
import { useEffect } from "preact/hooks";
import { escapeReordering } from "../model/harmless";
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
    document.title = escapeReordering(`${name} · Granary`);
  }, [name]);
  // Data of the previous name may still be loaded.
  if (data?.name === name) {
    return <Board key={`${name} ${data.version}`} loaded={data} onReload={reload} />;
  }
  const isUnknown = error?.status === 404;
  return (
    <>
      <header class="head">
        <h1>{name}</h1>
      </header>
      {!error ? (
        <Loading what="the dashboard" />
      ) : (
        <Failed
          message={isUnknown ? `No dashboard is called ${name}.` : error.message}
          onRetry={isUnknown ? undefined : reload}
        >
          {isUnknown && (
            <a class="button" href="/dashboards">
              All dashboards
            </a>
          )}
        </Failed>
      )}
    </>
  );
}
