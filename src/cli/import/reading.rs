//! Reads files in a separate thread, and sends their batches in order.

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver as Events, SyncSender, TryRecvError, sync_channel},
    },
    thread,
};

use super::{
    Format,
    delivery::Delivery,
    files::{Input, Options},
    parcel::{Parcel, format_location},
    senders::SenderNames,
    summary::{EXAMPLES_MAX, Summary},
    survey::Survey,
};
use crate::{
    import::{
        Location, Source, SourceFault,
        batcher::NumberedBatch,
        csv::Csv,
        influx::Influx,
        intake::{Receiver, SampleTally, read_all},
        mongodump::MongoDump,
        openmetrics::OpenMetrics,
        remote_write::RemoteWrite,
        samples::Samples,
        whisper::Whisper,
    },
    policy::RefusalReason,
};

/// The maximum number of batches that wait to be sent; the reader waits when there are more.
const WAITING_MAX: usize = 16;

/// An event of the reader.
enum Event {
    Batch {
        parcel: Parcel,
        read: u64,
    },
    Example {
        file: usize,
        location: Location,
        reason: RefusalReason,
        message: String,
    },
    End {
        file: usize,
        tally: SampleTally,
        refused: BTreeMap<RefusalReason, u64>,
        fault: Option<String>,
    },
}

/// Imports the files; without a delivery, they are only read.
pub(super) fn import(
    inputs: &[Input],
    options: &Options,
    names: SenderNames,
    mut delivery: Option<Delivery>,
    summary: &mut Summary,
) -> anyhow::Result<()> {
    thread::scope(|scope| {
        // The channel is dropped at the end of this closure, so that the reader ends when sending
        // fails.
        let (sender, events) = sync_channel(WAITING_MAX);
        scope.spawn(move || read_files(inputs, options, names, Pass::Import, &sender));
        deliver(&events, inputs, &mut delivery, summary)
    })
}

/// Reads the files that are new to the daemon, and returns their series.
pub(super) fn survey(inputs: &[Input], options: &Options, names: SenderNames) -> Survey {
    let mut survey = Survey::default();
    thread::scope(|scope| {
        let (sender, events) = sync_channel(WAITING_MAX);
        scope.spawn(move || read_files(inputs, options, names, Pass::Survey, &sender));
        for event in events {
            if let Event::Batch { parcel, .. } = event {
                survey.add(&parcel);
            }
        }
    });
    survey
}

/// The purpose of reading files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// A survey of the files that are new to the daemon.
    Survey,
    /// The import.
    Import,
}

fn deliver(
    events: &Events<Event>,
    inputs: &[Input],
    delivery: &mut Option<Delivery>,
    summary: &mut Summary,
) -> anyhow::Result<()> {
    let mut group: Vec<Parcel> = Vec::new();
    // The bytes of the files that were read up to the last batch of the group.
    let mut read_through = 0;
    loop {
        let event = match events.try_recv() {
            Ok(event) => event,
            Err(TryRecvError::Empty) => {
                // The reader is slower than the network: the group is sent at once.
                flush(&mut group, inputs, delivery, summary, read_through)?;
                match events.recv() {
                    Ok(event) => event,
                    Err(_) => return Ok(()),
                }
            }
            Err(TryRecvError::Disconnected) => {
                return flush(&mut group, inputs, delivery, summary, read_through);
            }
        };
        match event {
            Event::Batch { parcel, read } => {
                summary.add_batch(&parcel);
                group.push(parcel);
                read_through = read;
                if Delivery::is_full(&group) {
                    flush(&mut group, inputs, delivery, summary, read_through)?;
                }
            }
            Event::Example { file, location, reason, message } => {
                let location = format_location(&inputs[file].path, location);
                summary.example(&location, reason.as_str(), &message);
            }
            Event::End { file, tally, refused, fault } => {
                summary.add_file(tally, refused);
                if let Some(fault) = fault {
                    summary.fail(&inputs[file].path, &fault);
                }
            }
        }
    }
}

fn flush(
    group: &mut Vec<Parcel>,
    inputs: &[Input],
    delivery: &mut Option<Delivery>,
    summary: &mut Summary,
    read: u64,
) -> anyhow::Result<()> {
    let group = std::mem::take(group);
    let Some(delivery) = delivery else { return Ok(()) };
    delivery.send(group, inputs, summary, read)
}

fn read_files(
    inputs: &[Input],
    options: &Options,
    mut names: SenderNames,
    pass: Pass,
    sender: &SyncSender<Event>,
) {
    let read = Arc::new(AtomicU64::new(0));
    let mut reader = Reader {
        sender,
        file: 0,
        refused: BTreeMap::new(),
        examples: 0,
        read: read.clone(),
        is_connected: true,
    };
    for (file, input) in inputs.iter().enumerate() {
        reader.file = file;
        let name = match input.identity(options) {
            Ok(identity) if pass == Pass::Survey && names.contains(&identity) => continue,
            Ok(identity) => Ok(names.name(&identity, &input.path)),
            Err(cause) => Err(SourceFault::Read { line: 0, cause }),
        };
        let (tally, end) = name
            .and_then(|name| read_file(input, options, name, &mut reader, &read))
            .unwrap_or_else(|fault| (SampleTally::default(), Err(fault)));
        let refused = std::mem::take(&mut reader.refused);
        let fault = end.err().map(|fault| match fault {
            SourceFault::Read { line: 0, cause } => cause.to_string(),
            other @ (SourceFault::Read { .. } | SourceFault::Damaged(_)) => other.to_string(),
        });
        if !reader.is_connected || sender.send(Event::End { file, tally, refused, fault }).is_err()
        {
            return;
        }
    }
}

type ReadOutcome = (SampleTally, Result<(), SourceFault>);

fn read_file(
    input: &Input,
    options: &Options,
    sender: String,
    reader: &mut Reader<'_>,
    read: &Arc<AtomicU64>,
) -> Result<ReadOutcome, SourceFault> {
    let failed = |cause: io::Error| SourceFault::Read { line: 0, cause };
    let lines = || input.open(read).map_err(failed);
    let whole = || input.read_whole(read).map_err(failed);
    let run = |source: &mut dyn Source| Ok(read_all(source, sender, &options.selection, reader));
    match input.format {
        Format::OpenMetrics => run(&mut OpenMetrics::new(lines()?)),
        Format::Influx => run(&mut Influx::new(lines()?, options.precision)),
        Format::Csv => run(&mut Csv::new(lines()?, input.columns(options))),
        Format::Samples => run(&mut Samples::new(lines()?)),
        Format::Whisper => run(&mut Whisper::new(&whole()?, &input.metric, &options.templates)?),
        Format::MongoDump => run(&mut MongoDump::new(lines()?, &input.metric)),
        Format::RemoteWrite => run(&mut RemoteWrite::new(&whole()?)?),
    }
}

/// Passes on batches and refused samples to the sending thread.
struct Reader<'a> {
    sender: &'a SyncSender<Event>,
    file: usize,
    refused: BTreeMap<RefusalReason, u64>,
    examples: usize,
    read: Arc<AtomicU64>,
    is_connected: bool,
}

impl Receiver for Reader<'_> {
    fn batch(&mut self, numbered: NumberedBatch) -> bool {
        let parcel = Parcel { file: self.file, numbered };
        let read = self.read.load(Ordering::Relaxed);
        self.is_connected = self.sender.send(Event::Batch { parcel, read }).is_ok();
        self.is_connected
    }

    fn refused(&mut self, location: Location, reason: RefusalReason, count: u64, message: &str) {
        if count > 0 {
            *self.refused.entry(reason).or_default() += count;
        }
        if !message.is_empty() && self.examples < EXAMPLES_MAX {
            self.examples += 1;
            let message = message.to_owned();
            let event = Event::Example { file: self.file, location, reason, message };
            self.is_connected = self.sender.send(event).is_ok();
        }
    }
}
