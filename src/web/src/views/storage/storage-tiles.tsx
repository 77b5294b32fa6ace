/** The totals of the storage: disk, journal, head, catalog. */
import type { ComponentChildren } from "preact";
import type { DiskBudget, StorageAnswer } from "../../api/types";
import { preferredZone } from "../../app/preferences";
import { bytesText, countText, countWithNoun, percentText } from "../../model/words";
import { Meter } from "../status/meter";
import { shareOf } from "../status/shares";
import { whenText } from "./times";

interface TileProps {
  label: string;
  value: string;
  share?: number;
  children: ComponentChildren;
}

function Tile({ label, value, share, children }: TileProps) {
  return (
    <div class="tile">
      <span class="tile-label">{label}</span>
      <span class="tile-value num">{value}</span>
      {share !== undefined && <Meter share={share} />}
      <span class="tile-hint num">{children}</span>
    </div>
  );
}

function DiskTile({ disk }: Pick<StorageAnswer, "disk">) {
  if (!disk) {
    return (
      <Tile label="Free disk space" value="not known">
        not reported
      </Tile>
    );
  }
  const used = shareOf(disk.total - disk.free, disk.total);
  return (
    <Tile label="Free disk space" value={bytesText(disk.free)} share={used}>
      {percentText(used * 100)} of {bytesText(disk.total)} taken
    </Tile>
  );
}

function BudgetTile({ budget }: { budget: DiskBudget }) {
  const { bytes, bytes_max, drops } = budget;
  return (
    <Tile label="Disk budget" value={bytesText(bytes)} share={shareOf(bytes, bytes_max)}>
      of {bytesText(bytes_max)};{" "}
      {drops.length === 0
        ? "fits for a day"
        : `${countWithNoun(drops.length, "drop")} within a day`}
    </Tile>
  );
}

export function StorageTiles({ storage }: { storage: StorageAnswer }) {
  const { disk, budget, journal, head, catalog, objects, checker, preallocation } = storage;
  const partitions = storage.granularities.reduce(
    (all, { partitions }) => all + partitions.length,
    0,
  );
  return (
    <div class="tiles">
      <Tile label="All files" value={bytesText(storage.bytes)}>
        {countWithNoun(partitions, "partition")}
      </Tile>
      <DiskTile disk={disk} />
      {budget && <BudgetTile budget={budget} />}
      <Tile label="Series" value={countText(storage.series)}>
        {storage.series > 0 ? `${bytesText(storage.bytes / storage.series)} each` : "none yet"}
      </Tile>
      <Tile
        label="Journal"
        value={bytesText(journal.bytes)}
        share={shareOf(journal.bytes, journal.bytes_max)}
      >
        {countText(journal.records)} records wait; a checkpoint is due at{" "}
        {bytesText(journal.bytes_max)}
      </Tile>
      <Tile label="Head" value={bytesText(head.bytes)}>
        current periods
      </Tile>
      <Tile
        label="Memory"
        value={bytesText(catalog.bytes)}
        share={shareOf(catalog.bytes, catalog.bytes_max)}
      >
        cells awaiting a checkpoint, of {bytesText(catalog.bytes_max)}
      </Tile>
      <Tile label="Objects" value={bytesText(objects.bytes)}>
        dashboards, annotations
      </Tile>
      <Tile label="Checked" value={bytesText(checker.bytes)}>
        {countWithNoun(checker.files, "file")} read since the start,{" "}
        {countWithNoun(checker.faults, "fault")}
      </Tile>
      <Tile
        label="Documents ahead"
        value={preallocation.enabled ? countText(preallocation.documents_ahead) : "Off"}
      >
        {!preallocation.enabled
          ? "preallocation.enabled is false"
          : preallocation.until === null
            ? "created before the next period"
            : `shells, up to ${whenText(preferredZone.value, preallocation.until, storage.now)}`}
      </Tile>
    </div>
  );
}
