//! Copies a transaction log up to a zxid: `TxnLogToolkit -c` and `LogChopper`.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::{INVALID_INVOCATION, Outcome, Streams, decode_long};
use crate::model::Zxid;
use crate::store::raw_records::{Header, RawRecords, RawStep};
use crate::store::record::{self, LOG_MAGIC};
use crate::tree::txn::Entry;

const USAGE: &str = "\
Usage: LogChopper zxid_to_chop_to txn_log_to_chop chopped_filename
    this program will read the txn_log_to_chop file and copy all the transactions
    from it up to (and including) the given zxid into chopped_filename.
";

const PARTIAL: &str = "Last transaction was partial.";

/// Runs `LogChopper`.
///
/// # Errors
/// Errors of the standard streams; other errors are printed on standard output, as Java does.
///
/// Source: `LogChopper`, ZooKeeper 3.9.5.
pub fn run(arguments: &[String], streams: &mut Streams<'_>) -> Outcome {
    let (is_json, arguments) = super::take_json(arguments);
    let [zxid, from, to] = arguments.as_slice() else {
        streams.out.write_all(USAGE.as_bytes())?;
        return Ok(INVALID_INVOCATION);
    };
    let mut copied = || -> Result<bool, String> {
        let (from, to) = open(Path::new(from), Path::new(to))?;
        let zxid = decode_long(zxid).ok_or_else(|| format!("For input string: \"{zxid}\""))?;
        copy(from, to, zxid, is_json, streams)
    };
    match copied() {
        Ok(true) => Ok(0),
        Ok(false) => Ok(INVALID_INVOCATION),
        Err(error) => {
            put_failure(&error, is_json, streams)?;
            Ok(INVALID_INVOCATION)
        }
    }
}

/// Prints a line, or the object that says the same.
fn put(line: &str, object: &Value, is_json: bool, streams: &mut Streams<'_>) -> io::Result<()> {
    match is_json {
        true => writeln!(streams.out, "{object}"),
        false => writeln!(streams.out, "{line}"),
    }
}

fn put_header(header: Header, is_json: bool, streams: &mut Streams<'_>) -> io::Result<()> {
    let Header { dbid, version, .. } = header;
    let line = format!(
        "ZooKeeper Transactional Log File with dbid {dbid} txnlog format version {version}"
    );
    put(&line, &json!({ "dbid": dbid, "version": version }), is_json, streams)
}

fn put_failure(error: &str, is_json: bool, streams: &mut Streams<'_>) -> io::Result<()> {
    put(&format!("Got exception: {error}"), &json!({ "error": error }), is_json, streams)
}

/// Copies a log to `NAME.chopped<zxid in decimal>` beside it. The exit code is 0 even if that failed, as with Java.
///
/// # Errors
/// Those of the standard streams.
pub fn beside(path: &Path, zxid: i64, is_json: bool, streams: &mut Streams<'_>) -> Outcome {
    let name = path.file_name().unwrap_or_default().display().to_string();
    let target = path.with_file_name(format!("{name}.chopped{zxid}"));
    let copied = open(path, &target).and_then(|(from, to)| copy(from, to, zxid, is_json, streams));
    let failure = match copied {
        Ok(true) => return Ok(0),
        Ok(false) => format!("Failed to chop {name}"),
        Err(error) => error,
    };
    put_failure(&failure, is_json, streams)?;
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
    from: impl io::BufRead,
    mut to: BufWriter<File>,
    zxid: i64,
    is_json: bool,
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
    put_header(header, is_json, streams).map_err(text_of)?;
    to.write_all(&header.to_bytes()).map_err(text_of)?;
    let (mut count, mut has_zxid, mut previous) = (0, false, -1);
    let chopped = loop {
        let record = match records.step().map_err(text_of)? {
            RawStep::Record(record) => record,
            RawStep::End => {
                let line = format!("EOF reached after {count} txns.");
                let object = json!({ "transactions": count, "chopped": false });
                put(&line, &object, is_json, streams).map_err(text_of)?;
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
            if !is_json {
                writeln!(streams.out, "{PARTIAL}").map_err(text_of)?;
            }
            return Err(PARTIAL.to_owned());
        }
        has_zxid |= at == zxid;
        if let Some(line) = gap(previous, at) {
            let object = json!({ "gap": line, "after": hex(previous), "before": hex(at) });
            put(&line, &object, is_json, streams).map_err(text_of)?;
        }
        previous = at;
        if zxid < at {
            let is_there = 0 < count && has_zxid;
            let line = if is_there {
                format!("Chopping at {zxid:x} new log has {count} records")
            } else {
                format!("This log does not contain zxid {zxid:x}")
            };
            let object = json!({ "zxid": hex(zxid), "transactions": count, "chopped": is_there });
            put(&line, &object, is_json, streams).map_err(text_of)?;
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

/// A zxid as the other toolkits have it in JSON.
fn hex(zxid: i64) -> String {
    format!("0x{zxid:x}")
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

#[cfg(test)]
mod tests {
    use super::super::{Outcome, Streams, log_chopper, txn_log};
    use serde_json::{Value, json};

    /// The exit code, and what was printed, which is one object a line.
    fn printed(
        tool: fn(&[String], &mut Streams<'_>) -> Outcome,
        words: &[&str],
    ) -> (u8, Vec<Value>) {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut streams = Streams { input: &mut &b""[..], out: &mut out, err: &mut err };
        let code = tool(&words, &mut streams).unwrap();
        let text = String::from_utf8(out).unwrap();
        (code, text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    }

    #[test]
    fn json_has_one_object_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
        let (log, to) = (path("log.1"), path("to"));
        let bytes = include_bytes!("../../../compat-tests/golden/java-data/version-2/log.1");
        std::fs::write(&log, bytes).unwrap();
        let head = json!({ "dbid": 0, "version": 2 });
        let chopped = json!({ "zxid": "0x2", "transactions": 2, "chopped": true });
        let found = printed(log_chopper, &["--json", "2", &log, &to]);
        assert_eq!(found, (0, vec![head.clone(), chopped.clone()]));
        let found = printed(txn_log, &["--chop", "--zxid", "2", &log, "--json"]);
        assert_eq!(found, (0, vec![head.clone(), chopped]));
        let (code, found) = printed(log_chopper, &["0x7fffffff", &log, &to, "--json"]);
        assert_eq!((code, &found[0], &found[1]["chopped"]), (2, &head, &json!(false)));
        let (code, found) = printed(log_chopper, &["1", &path("none"), &to, "--json"]);
        assert!(code == 2 && found.len() == 1 && found[0]["error"].is_string(), "{found:?}");
    }
}
