//! Copies a transaction log up to a zxid: `TxnLogToolkit -c` and `LogChopper`.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;

use super::{INVALID_INVOCATION, Outcome, Streams, decode_long};
use crate::model::Zxid;
use crate::store::raw_records::{RawRecords, RawStep};
use crate::store::record::{self, LOG_MAGIC};
use crate::tree::txn::Entry;

const USAGE: &str = "\
Usage: LogChopper zxid_to_chop_to txn_log_to_chop chopped_filename
    this program will read the txn_log_to_chop file and copy all the transactions
    from it up to (and including) the given zxid into chopped_filename.
";

/// Runs `LogChopper`.
///
/// # Errors
/// Errors of the standard streams; other errors are printed on standard output, as Java does.
///
/// Source: `LogChopper`, ZooKeeper 3.9.5.
pub fn run(arguments: &[String], streams: &mut Streams<'_>) -> Outcome {
    let (_, arguments) = super::take_json(arguments);
    let [zxid, from, to] = arguments.as_slice() else {
        streams.out.write_all(USAGE.as_bytes())?;
        return Ok(INVALID_INVOCATION);
    };
    let mut copied = || -> Result<bool, String> {
        let (from, to) = open(Path::new(from), Path::new(to))?;
        let zxid = decode_long(zxid).ok_or_else(|| format!("For input string: \"{zxid}\""))?;
        copy(from, to, zxid, streams)
    };
    match copied() {
        Ok(true) => Ok(0),
        Ok(false) => Ok(INVALID_INVOCATION),
        Err(error) => {
            writeln!(streams.out, "Got exception: {error}")?;
            Ok(INVALID_INVOCATION)
        }
    }
}

/// Copies a log to `NAME.chopped<zxid in decimal>` beside it. The exit code is 0 even if that failed, as with Java.
///
/// # Errors
/// Those of the standard streams.
pub fn beside(path: &Path, zxid: i64, streams: &mut Streams<'_>) -> Outcome {
    let name = path.file_name().unwrap_or_default().display().to_string();
    let target = path.with_file_name(format!("{name}.chopped{zxid}"));
    let copied = open(path, &target).and_then(|(from, to)| copy(from, to, zxid, streams));
    let failure = match copied {
        Ok(true) => return Ok(0),
        Ok(false) => format!("Failed to chop {name}"),
        Err(error) => error,
    };
    writeln!(streams.out, "Got exception: {failure}")?;
    Ok(0)
}

fn open(from: &Path, to: &Path) -> Result<(BufReader<File>, BufWriter<File>), String> {
    let failed = |path: &Path, error: io::Error| {
        let why = match error.kind() {
            io::ErrorKind::NotFound => "No such file or directory".to_owned(),
            io::ErrorKind::PermissionDenied => "Permission denied".to_owned(),
            _ => error.to_string(),
        };
        format!("{} ({why})", path.display())
    };
    let source = File::open(from).map_err(|error| failed(from, error))?;
    let target = File::create(to).map_err(|error| failed(to, error))?;
    Ok((BufReader::with_capacity(1 << 20, source), BufWriter::new(target)))
}

/// Copies the records up to `zxid`; `false`: there was nothing to chop.
fn copy(
    from: impl io::Read,
    mut to: BufWriter<File>,
    zxid: i64,
    streams: &mut Streams<'_>,
) -> Result<bool, String> {
    let text_of = |error: io::Error| error.to_string();
    let mut records = RawRecords::new(from);
    let header = match records.header() {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err("null".to_owned()),
        other => other.map_err(text_of)?,
    };
    if header.magic != LOG_MAGIC {
        writeln!(streams.err, "Invalid magic number in txn log file").map_err(text_of)?;
        return Ok(false);
    }
    let (dbid, version) = (header.dbid, header.version);
    writeln!(
        streams.out,
        "ZooKeeper Transactional Log File with dbid {dbid} txnlog format version {version}"
    )
    .map_err(text_of)?;
    to.write_all(&header.to_bytes()).map_err(text_of)?;
    let (mut count, mut has_zxid, mut previous) = (0, false, -1);
    let chopped = loop {
        let record = match records.step().map_err(text_of)? {
            RawStep::Record(record) => record,
            RawStep::End => {
                writeln!(streams.out, "EOF reached after {count} txns.").map_err(text_of)?;
                break false;
            }
            RawStep::Length(len) => return Err(format!("Unreasonable length = {len}")),
        };
        let (stored, actual) = (record.stored, record.actual());
        if stored != actual {
            return Err(format!("CRC doesn't match {stored} vs {actual}"));
        }
        let at = Entry::decode(record.entry).map_err(|error| error.to_string())?.header.zxid;
        if !record.has_end_mark() {
            if record.end_mark.is_none() {
                return Err("null".to_owned());
            }
            writeln!(streams.out, "Last transaction was partial.").map_err(text_of)?;
            return Err("Last transaction was partial.".to_owned());
        }
        has_zxid |= at == zxid;
        if let Some(gap) = gap(previous, at) {
            writeln!(streams.out, "{gap}").map_err(text_of)?;
        }
        previous = at;
        if zxid < at {
            let is_there = 0 < count && has_zxid;
            let line = if is_there {
                format!("Chopping at {zxid:x} new log has {count} records")
            } else {
                format!("This log does not contain zxid {zxid:x}")
            };
            writeln!(streams.out, "{line}").map_err(text_of)?;
            break is_there;
        }
        let mut bytes = Vec::new();
        record::put_record(record.entry, &mut bytes);
        to.write_all(&bytes).map_err(text_of)?;
        count += 1;
    };
    to.flush().map_err(text_of)?;
    Ok(chopped)
}

/// The line about transactions that are missing between two.
fn gap(previous: i64, at: i64) -> Option<String> {
    if previous == -1 || Some(at) == previous.checked_add(1) {
        return None;
    }
    let (Some(before), Some(after)) = (Zxid::from_wire(previous), Zxid::from_wire(at)) else {
        return None;
    };
    let kind = match before.epoch() == after.epoch() {
        true => "intra",
        false if after.counter() != 1 => "inter",
        false => return None,
    };
    Some(format!("There is {kind}-epoch gap between {previous:x} and {at:x}"))
}
