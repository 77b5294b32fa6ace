/** The storage: what lies on the disk and in memory, and each document with its bytes. */
import { api } from "../api/client";
import { useResource } from "../api/resource";
import { Icon } from "../parts/icon";
import { Page } from "../parts/page";
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
  const answer = useResource("storage", api.storage, { everyMs: EVERY_MS }).value;
  return (
    <Page
      class="storage-view"
      title="Storage"
      what="the storage"
      answer={answer}
      about={({ data_dir }) => <p class="muted mono data-dir">{data_dir}</p>}
    >
      {(storage) => (
        <>
          <Damaged files={storage.damaged} />
          <StorageTiles storage={storage} />
          <section class="card section">
            <div class="card-head">
              <h2>Partitions</h2>
            </div>
            <Timeline storage={storage} />
            <PartitionTable storage={storage} />
          </section>
          <Explorer storage={storage} />
          <Checkpoints storage={storage} />
        </>
      )}
    </Page>
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
