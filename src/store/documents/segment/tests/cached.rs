//! Tests of reads with the cache of decoded columns, compared with reads of the file.

use std::{fs::OpenOptions, io::Write, path::Path, sync::Arc};

use proptest::{prelude::*, sample::select};

use super::{Series, WIDTH_MS, series};
use crate::{
    model::{Cell, UnixMillis},
    store::{
        documents::segment::{
            Columns, Scratch,
            cache::SealedCache,
            file::{Segment, TileId},
            tile::TileWriter,
            writer::SegmentWriter,
        },
        error::StoreError,
        file::{folder::Folder, medium::Medium},
    },
};

const NAME: &str = "one.1.sealed";
const SLOTS: usize = 300;

fn segment_of(folder: &Path, series: &[Series]) -> Segment {
    let medium: Arc<dyn Medium> = Arc::new(Folder::new(folder).unwrap());
    let partition = (UnixMillis(1_795_262_400_000), WIDTH_MS);
    let mut writer = SegmentWriter::create(&medium, NAME.to_owned(), partition, None).unwrap();
    let (id, mut tile) = (TileId { seconds: 0, row: 7 }, TileWriter::default());
    for (lane, cells) in series {
        let cells = cells.iter().map(|(slot, cell)| (*slot, cell));
        tile.add(id.key(), *lane, WIDTH_MS, cells);
    }
    assert!(tile.is_empty() || writer.add(id, SLOTS, &mut tile).unwrap());
    writer.finish().unwrap()
}

/// Reads cells, and returns the bits that a reader may rely on.
fn read(
    segment: &Segment,
    (lane, from, length, columns): (usize, usize, usize, Columns),
    scratch: &mut Scratch,
) -> Result<Vec<(usize, [u64; 9])>, StoreError> {
    let Some((tile, ..)) = segment.find(0, 7) else { return Ok(Vec::new()) };
    let (head, mut found) = (segment.head(tile, scratch)?, Vec::new());
    let slots = from..(from + length).min(SLOTS);
    segment.cells((tile, &head), lane, &slots, columns, scratch, |slot, cell| {
        // Readers split a cell of two samples, which needs all columns of values.
        let columns = if cell.n == 2 { columns.and(Columns::VALUES) } else { columns };
        let Cell { sum, min, max, first, last, m2, .. } = cell;
        let values = [
            (Columns::SUM, sum),
            (Columns::MIN, min),
            (Columns::MAX, max),
            (Columns::ENDS, first),
            (Columns::ENDS, last),
            (Columns::MOMENT, m2),
        ];
        let wanted =
            values.map(|(column, value)| if columns.has_any(column) { value.to_bits() } else { 0 });
        let [sum, min, max, first, last, m2] = wanted;
        let times = [cell.n, cell.first_at, cell.last_at].map(u64::from);
        let [n, first_at, last_at] = times;
        found.push((slot, [n, first_at, last_at, sum, min, max, first, last, m2]));
    })?;
    Ok(found)
}

fn columns() -> impl Strategy<Value = Columns> {
    let some = [Columns::NONE, Columns::SUM, Columns::MIN, Columns::MAX, Columns::ENDS];
    select([&some[..], &[Columns::MOMENT, Columns::VALUES, Columns::ALL]].concat())
}

proptest! {
    #[test]
    fn reads_with_the_cache_return_the_cells_of_the_file(
        series in series(),
        reads in prop::collection::vec((0..4_usize, 0..SLOTS, 0..SLOTS, columns()), 1..30),
        bytes_max in select(vec![0_usize, 20_000, 1 << 20]),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let segment = segment_of(folder.path(), &series);
        let cache = Arc::new(SealedCache::new());
        cache.set_bytes_max(bytes_max);
        let mut cached = Scratch::with_cache(cache.clone());
        for (index, from, length, columns) in reads {
            let request = (series[index % series.len()].0, from, length, columns);
            let expected = read(&segment, request, &mut Scratch::default()).unwrap();
            prop_assert_eq!(read(&segment, request, &mut cached).unwrap(), expected);
            prop_assert!(cache.bytes() <= bytes_max, "{}", cache.bytes());
        }
    }
}

#[test]
fn only_verified_blocks_are_in_the_cache() {
    let cells = |value: f64| (0..60).map(|slot| (slot, Cell::single(slot.into(), value))).collect();
    let folder = tempfile::tempdir().unwrap();
    let segment = segment_of(folder.path(), &[(3, cells(1.5)), (4, cells(2.5))]);
    let mut cached = Scratch::with_cache(Arc::new(SealedCache::new()));
    let read_slots = |lane, length, scratch: &mut Scratch| {
        read(&segment, (lane, 0, length, Columns::ENDS), scratch)
    };
    let before = read_slots(3, 60, &mut cached).unwrap();
    assert_eq!(before.len(), 60);
    // Damages the blocks, and not the head, which is in the cache.
    let mut file = OpenOptions::new().write(true).open(folder.path().join(NAME)).unwrap();
    file.write_all(&vec![0xa5; segment.tile_bytes(0) as usize]).unwrap();
    assert_eq!(read_slots(3, 20, &mut cached).unwrap(), before[..20]);
    for _ in 0..2 {
        assert!(read_slots(4, 60, &mut cached).unwrap_err().is_damage());
    }
    assert!(read_slots(3, 20, &mut Scratch::default()).unwrap_err().is_damage());
}
