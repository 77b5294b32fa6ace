/** The storage: data on disk and in memory, and each document with its bytes. */
import { api } from "../api/client";
import type { RuleSeries } from "../api/types";
import { useResource } from "../api/resource";
import { countText, countWithNoun } from "../model/words";
import { Callout } from "../parts/callout";
import { Page } from "../parts/page";
import { Checkpoints } from "./storage/checkpoints";
import { DocumentSearch } from "./storage/document-search";
import { Forecast, MissingSpace } from "./storage/forecast";
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
          <MissingSpace storage={storage} />
          <StorageTiles storage={storage} />
          <section class="card section">
            <div class="card-head">
              <h2>Partitions</h2>
            </div>
            <Timeline storage={storage} />
            <PartitionTable storage={storage} />
            <Rules rules={storage.rules} />
          </section>
          <Forecast storage={storage} />
          <DocumentSearch storage={storage} />
          <Checkpoints storage={storage} />
        </>
      )}
    </Page>
  );
}

function Rules({ rules }: { rules: RuleSeries[] }) {
  if (rules.length === 0) return null;
  const texts = rules.map(({ name, series }) => `${name} ${countText(series)} series`);
  return <p class="muted">Rules of retention: {texts.join(", ")}</p>;
}

function Damaged({ files }: { files: string[] }) {
  if (files.length === 0) return null;
  return (
    <Callout
      tone="bad"
      label="Damaged files"
      title={`${countWithNoun(files.length, "damaged file")} set aside`}
    >
      <p>
        Their data is not served; coarser granularities answer instead, with a note. Restore the
        files from a snapshot or remove them, then restart the daemon.
      </p>
      <ul>
        {files.map((file) => (
          <li key={file} class="mono">
            {file}
          </li>
        ))}
      </ul>
    </Callout>
  );
}
