/** The storage: what lies on the disk and in memory, and each document with its bytes. */
import { useEffect } from "preact/hooks";
import { api } from "../api/client";
import { useResource } from "../api/resource";
import { Icon } from "../parts/icon";
import { Failed, Loading } from "../parts/states";
import { Checkpoints } from "./storage/checkpoints";
import { Explorer } from "./storage/explorer";
import { PartitionTable } from "./storage/partition-table";
import { StorageTiles } from "./storage/storage-tiles";
import { Timeline } from "./storage/timeline";
import "../styles/tiles.css";
import "./storage/storage.css";
import "./storage/document.css";

const EVERY_MS = 10_000;

export function Storage() {
  const { data, error, reload } = useResource("storage", api.storage, EVERY_MS).value;
  useEffect(() => {
    document.title = "Storage · Granary";
  }, []);
  return (
    <div class="storage-view">
      <div class="head">
        <h1>Storage</h1>
        {error && data && (
          <p class="stale-note" role="status">
            Not refreshed: {error.message}
          </p>
        )}
        {data && <p class="muted mono data-dir">{data.data_dir}</p>}
      </div>
      {data ? (
        <>
          <Damaged files={data.damaged} />
          <StorageTiles storage={data} />
          <section class="card section">
            <div class="card-head">
              <h2>Partitions</h2>
            </div>
            <Timeline storage={data} />
            <PartitionTable storage={data} />
          </section>
          <Explorer storage={data} />
          <Checkpoints storage={data} />
        </>
      ) : error ? (
        <section class="card">
          <Failed message={`The storage cannot be shown: ${error.message}`}>
            <button type="button" class="button" onClick={reload}>
              Try again
            </button>
          </Failed>
        </section>
      ) : (
        <section class="card">
          <Loading what="the storage" />
        </section>
      )}
    </div>
  );
}

function Damaged({ files }: { files: string[] }) {
  if (files.length === 0) return null;
  return (
    <section class="card damaged" role="alert">
      <Icon name="warning" />
      <div>
        <h2>
          {files.length === 1 ? "A file is damaged" : `${files.length} files are damaged`} and set
          aside
        </h2>
        <p>
          What was in them is not served; coarser granularities answer in their place, with a note.
          Restore them from a snapshot, or remove them, and start the daemon again.
        </p>
        <ul>
          {files.map((file) => (
            <li key={file} class="mono">
              {file}
            </li>
          ))}
        </ul>
      </div>
    </section>
  );
}
