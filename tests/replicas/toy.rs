//! A shard on disk: a file of all entries, synced now and then, and the state that follows.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
};

use granary_replication::{Body, Origin, Shard, ShardFault, ShardRow};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The number of entries between syncs of the file.
const ENTRIES_PER_SYNC: u64 = 5;
/// The length of an entry: its number, 1 for a fence, and a batch.
const ENTRY_BYTES: usize = 13;

/// The state of a shard.
#[derive(Debug)]
pub(crate) struct Toy {
    path: PathBuf,
    file: File,
    /// The folder with the files and the ports of all nodes.
    cluster: PathBuf,
    shard: u16,
    applied: u64,
    durable: u64,
    pub(crate) digest: u64,
    origin: Option<Origin>,
    /// The number of times that each batch was applied.
    pub(crate) batches: BTreeMap<u32, u32>,
}

impl Toy {
    /// Opens the file of a shard, up to its last complete entry.
    pub(crate) fn open(cluster: &Path, node: &str, shard: u16) -> Self {
        let path = cluster.join(node).join(format!("shard-{shard}"));
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(&path).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        let mut toy = Self {
            file,
            path,
            cluster: cluster.to_owned(),
            shard,
            applied: 0,
            durable: 0,
            digest: 0,
            origin: None,
            batches: BTreeMap::new(),
        };
        toy.origin = fs::read_to_string(toy.origin_path()).ok().map(|text| parse_origin(&text));
        toy.load(&bytes);
        toy
    }

    fn origin_path(&self) -> PathBuf {
        self.path.with_extension("origin")
    }

    fn load(&mut self, bytes: &[u8]) {
        (self.applied, self.digest) = (0, 0);
        self.batches.clear();
        let (entries, _) = bytes.as_chunks::<ENTRY_BYTES>();
        for entry in entries {
            self.advance(entry);
        }
        self.file.set_len((entries.len() * ENTRY_BYTES) as u64).unwrap();
        self.sync();
    }

    fn advance(&mut self, entry: &[u8; ENTRY_BYTES]) {
        self.applied += 1;
        assert_eq!(entry[..8], self.applied.to_le_bytes(), "{}", self.path.display());
        self.digest = xxh3_64_with_seed(entry, self.digest);
        if entry[8] == 0 {
            let batch = u32::from_le_bytes(entry[9..].try_into().unwrap());
            *self.batches.entry(batch).or_default() += 1;
        }
    }

    fn sync(&mut self) {
        self.file.sync_data().unwrap();
        self.durable = self.applied;
    }

    /// Returns the bytes of all entries that are durable.
    pub(crate) fn snapshot(&self) -> Vec<u8> {
        let mut bytes = fs::read(&self.path).unwrap();
        bytes.truncate(self.durable as usize * ENTRY_BYTES);
        bytes
    }
}

fn parse_origin(text: &str) -> Origin {
    let numbers: Vec<i64> = text.split(' ').map(|word| word.parse().unwrap()).collect();
    let fence = (numbers[2] > 0).then(|| (numbers[2] as u64, numbers[3]));
    Origin { log: numbers[0], is_founded: numbers[1] == 1, fence }
}

impl Shard for Toy {
    fn origin(&self) -> Option<Origin> {
        self.origin
    }

    fn set_origin(&mut self, origin: Origin) -> Result<(), ShardFault> {
        let (number, nonce) = origin.fence.unwrap_or_default();
        let text = format!("{} {} {number} {nonce}", origin.log, i32::from(origin.is_founded));
        let new = self.path.with_extension("new");
        fs::write(&new, text).unwrap();
        File::open(&new).unwrap().sync_all().unwrap();
        fs::rename(new, self.origin_path()).unwrap();
        self.origin = Some(origin);
        Ok(())
    }

    fn applied(&self) -> u64 {
        self.applied
    }

    fn apply(&mut self, number: u64, body: &Body) -> Result<(), ShardFault> {
        let mut entry = [0; ENTRY_BYTES];
        entry[..8].copy_from_slice(&number.to_le_bytes());
        match body {
            Body::Fence => entry[8] = 1,
            Body::Record(bytes) => entry[9..].copy_from_slice(bytes),
        }
        self.file.write_all(&entry).map_err(|error| ShardFault(error.to_string()))?;
        self.advance(&entry);
        if number.is_multiple_of(ENTRIES_PER_SYNC) {
            self.sync();
        }
        Ok(())
    }

    fn durable_floor(&self) -> u64 {
        self.durable
    }

    /// Copies the entries of the first member that has those up to the cut.
    fn seed(&mut self, row: &ShardRow) -> Result<(), ShardFault> {
        for node in row.members.keys() {
            let copy = || {
                let port = fs::read_to_string(self.cluster.join(format!("{node}.port"))).ok()?;
                let mut stream = TcpStream::connect(("127.0.0.1", port.parse().ok()?)).ok()?;
                writeln!(stream, "snapshot {}", self.shard).ok()?;
                let mut bytes = Vec::new();
                stream.read_to_end(&mut bytes).ok().map(|_| bytes)
            };
            let Some(bytes) = row.has_cut(node).then(copy).flatten() else { continue };
            if (bytes.len() / ENTRY_BYTES) as u64 >= row.cut {
                self.set_origin(Origin { log: row.log, is_founded: true, fence: None })?;
                self.file.set_len(0).unwrap();
                self.file.write_all(&bytes).unwrap();
                self.load(&bytes);
                return Ok(());
            }
        }
        Err(ShardFault(format!("no member of {row:?} can be reached")))
    }
}
