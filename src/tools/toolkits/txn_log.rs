//! `TxnLogToolkit`: prints a transaction log, repairs checksums, chops.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Seek as _, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::commons_cli::{self, Known, Parsed};
use super::dates::Dates;
use super::{Failed, INVALID_INVOCATION, Outcome, Streams, UNEXPECTED_ERROR, chop, txn_text};
use crate::store::raw_records::{Header, RawRecord, RawRecords, RawStep};
use crate::store::record::LOG_MAGIC;

const KNOWN: &[Known] = &[
    Known { short: 'h', long: "help", takes_value: false, required: false },
    Known { short: 'r', long: "recover", takes_value: false, required: false },
    Known { short: 'v', long: "verbose", takes_value: false, required: false },
    Known { short: 'd', long: "dump", takes_value: false, required: false },
    Known { short: 'y', long: "yes", takes_value: false, required: false },
    Known { short: 'c', long: "chop", takes_value: false, required: false },
    Known { short: 'z', long: "zxid", takes_value: true, required: false },
];

const USAGE: &str = "\
usage: TxnLogToolkit [-dhrvc] <txn_log_file_name> (-z <zxid>)
 -c,--chop         Chop mode. Chop txn file to a zxid.
 -d,--dump         Dump mode. Dump all entries of the log file with printing the content of a nodepath (default)
 -h,--help         Print help message
 -r,--recover      Recovery mode. Re-calculate CRC for broken entries.
 -v,--verbose      Be verbose in recovery mode: print all entries, not just fixed ones.
 -y,--yes          Non-interactive mode: repair all CRC errors without asking
 -z,--zxid <arg>   Used with chop. Zxid to which to chop.
";

/// The repaired file is extended by this many bytes of zeros at once, as Java does by default.
const PADDING: u64 = 64 << 20;

/// Runs the tool.
///
/// # Errors
/// [`Failed`]: files that can't be read or written, entries that are no transactions.
///
/// Source: `TxnLogToolkit`, ZooKeeper 3.9.5.
pub fn run(arguments: &[String], streams: &mut Streams<'_>) -> Outcome {
    let (is_json, arguments) = super::take_json(arguments);
    let parsed = match commons_cli::parse(KNOWN, &arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            writeln!(streams.err, "{error}\n")?;
            streams.out.write_all(USAGE.as_bytes())?;
            return Ok(UNEXPECTED_ERROR);
        }
    };
    let (true, Some(name)) = (!parsed.has('h'), parsed.rest.first()) else {
        streams.out.write_all(USAGE.as_bytes())?;
        return Ok(if parsed.has('h') { 0 } else { UNEXPECTED_ERROR });
    };
    let path = Path::new(name);
    if File::open(path).is_err() {
        writeln!(streams.err, "File doesn't exist or not readable: {name}")?;
        return Ok(UNEXPECTED_ERROR);
    }
    if let (true, Some(zxid)) = (parsed.has('c'), parsed.value('z')) {
        let number = super::decode_long(zxid).filter(|zxid| 0 <= *zxid);
        let zxid =
            number.ok_or_else(|| Failed::Argument(format!("{zxid:?} is not a zxid to chop at")))?;
        return chop::beside(path, zxid, is_json, streams);
    }
    dump(path, &parsed, is_json, streams)
}

fn dump(path: &Path, parsed: &Parsed, is_json: bool, streams: &mut Streams<'_>) -> Outcome {
    let name = path.display();
    let fixed = PathBuf::from(format!("{name}.fixed"));
    if parsed.has('r') && fixed.exists() {
        writeln!(streams.err, "Recovery file {} already exists or not writable", fixed.display())?;
        return Ok(UNEXPECTED_ERROR);
    }
    let failed = |source| Failed::File { path: path.to_owned(), source };
    let mut records =
        RawRecords::new(BufReader::with_capacity(1 << 17, File::open(path).map_err(failed)?));
    let mut repaired = match parsed.has('r') {
        true => Some(Repaired::create(fixed)?),
        false => None,
    };
    let header = records.header().map_err(failed)?;
    if header.magic != LOG_MAGIC {
        let name = path.file_name().unwrap_or_default().display();
        writeln!(streams.err, "Invalid magic number for {name}")?;
        return Ok(INVALID_INVOCATION);
    }
    let printer = Printer { is_json, dates: Dates::of_machine(), path, text: RefCell::default() };
    printer.header(header, streams.out)?;
    if let Some(repaired) = &mut repaired {
        repaired.begin(header)?;
    }
    let mut count = 0;
    loop {
        let record = match records.step().map_err(failed)? {
            RawStep::Record(record) => record,
            RawStep::End => break,
            RawStep::Length(len) => {
                return Err(
                    printer.content(format!("a record of {len} bytes after {count} transactions"))
                );
            }
        };
        let Some(stored) = judge(&record, parsed, &mut repaired, &printer, streams)? else {
            writeln!(streams.err, "Recovery aborted.")?;
            return Ok(0);
        };
        if !record.has_end_mark() {
            return partial(&printer, record, count, streams);
        }
        if let Some(repaired) = &mut repaired {
            repaired.put(stored, record.entry)?;
        }
        count += 1;
    }
    printer.end(count, streams.out)?;
    if let Some(mut repaired) = repaired {
        repaired.finish()?;
        printer.repaired(&repaired, streams.out)?;
    }
    Ok(0)
}

/// Prints a record if it is to be printed. Returns its checksum, repaired if that was wanted; `None`: the operator aborts.
fn judge(
    record: &RawRecord<'_>,
    parsed: &Parsed,
    repaired: &mut Option<Repaired>,
    printer: &Printer<'_>,
    streams: &mut Streams<'_>,
) -> Result<Option<i64>, Failed> {
    let is_sound = record.stored == record.actual();
    let mut stored = record.stored;
    if !is_sound {
        let is_fixed = match repaired {
            Some(_) if parsed.has('y') => {
                printer.txn(record, "CRC FIXED - ", streams.out)?;
                true
            }
            Some(_) => {
                printer.txn(record, "CRC ERROR - ", streams.out)?;
                match ask(streams)? {
                    Answer::Yes => true,
                    Answer::No => false,
                    Answer::Abort => return Ok(None),
                }
            }
            None => {
                printer.txn(record, "CRC ERROR - ", streams.out)?;
                false
            }
        };
        if let (true, Some(repaired)) = (is_fixed, repaired.as_mut()) {
            stored = record.actual();
            repaired.fixed += 1;
        }
    }
    // As JSON a record is printed once: it says itself whether its checksum matches.
    let is_in_json = printer.is_json && !is_sound;
    if (repaired.is_none() || parsed.has('v')) && !is_in_json {
        printer.txn(record, "", streams.out)?;
    }
    Ok(Some(stored))
}

/// A record without its end mark; where the file ends in place of it, Java's tool ends with an exception.
fn partial(
    printer: &Printer<'_>,
    record: RawRecord<'_>,
    count: u64,
    streams: &mut Streams<'_>,
) -> Outcome {
    if record.end_mark.is_none() {
        return Err(printer.content(format!(
            "the file ends before the end mark of the record after {count} transactions"
        )));
    }
    writeln!(streams.err, "Last transaction was partial.")?;
    Ok(UNEXPECTED_ERROR)
}

enum Answer {
    Yes,
    No,
    Abort,
}

/// Asks until the answer begins with one of the three letters; answers are words, wherever the lines end.
fn ask(streams: &mut Streams<'_>) -> Result<Answer, Failed> {
    loop {
        streams.out.write_all(b"Would you like to fix it (Yes/No/Abort) ? ")?;
        streams.out.flush()?;
        match word(streams)?.to_ascii_uppercase() {
            b'Y' => return Ok(Answer::Yes),
            b'N' => return Ok(Answer::No),
            b'A' => return Ok(Answer::Abort),
            _ => {}
        }
    }
}

/// The first byte of the next word of standard input; the whole word is taken.
fn word(streams: &mut Streams<'_>) -> Result<u8, Failed> {
    let mut first = None;
    loop {
        let (byte, is_end) = match streams.input.fill_buf()?.first() {
            None => (b'\n', true),
            Some(&byte) => (byte, false),
        };
        match first {
            None if is_end => return Err(Failed::NoAnswer),
            Some(first) if byte.is_ascii_whitespace() => return Ok(first),
            None if !byte.is_ascii_whitespace() => first = Some(byte),
            _ => {}
        }
        streams.input.consume(1);
    }
}

/// The file `.fixed`.
struct Repaired {
    path: PathBuf,
    file: BufWriter<File>,
    written: u64,
    /// Length that the file is extended to.
    extended: u64,
    fixed: u64,
}

impl Repaired {
    fn create(path: PathBuf) -> Result<Self, Failed> {
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.map_err(|source| Failed::File { path: path.clone(), source })?;
        Ok(Self {
            path,
            file: BufWriter::with_capacity(1 << 20, file),
            written: 0,
            extended: 0,
            fixed: 0,
        })
    }

    fn begin(&mut self, header: Header) -> Result<(), Failed> {
        self.write(&header.to_bytes())?;
        self.extended = self.written;
        Ok(())
    }

    fn put(&mut self, stored: i64, entry: &[u8]) -> Result<(), Failed> {
        self.extend();
        let mut bytes = Vec::with_capacity(13 + entry.len());
        bytes.extend_from_slice(&stored.to_be_bytes());
        bytes.extend_from_slice(&(entry.len() as u32).to_be_bytes());
        bytes.extend_from_slice(entry);
        bytes.push(b'B');
        self.write(&bytes)
    }

    /// The file's length grows before its end is reached.
    ///
    /// Source: `FilePadding.calculateFileSizeWithPadding`, ZooKeeper 3.9.5.
    fn extend(&mut self) {
        if self.written + 4096 < self.extended {
            return;
        }
        self.extended = if self.extended < self.written {
            (self.written + PADDING) / PADDING * PADDING
        } else {
            self.extended + PADDING
        };
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failed> {
        self.written += bytes.len() as u64;
        let written = self.file.write_all(bytes);
        written.map_err(|source| Failed::File { path: self.path.clone(), source })
    }

    fn finish(&mut self) -> Result<(), Failed> {
        let mut done = || -> io::Result<()> {
            self.file.flush()?;
            let len = self.file.stream_position()?.max(self.extended);
            self.file.get_ref().set_len(len)?;
            self.file.get_ref().sync_all()
        };
        done().map_err(|source| Failed::File { path: self.path.clone(), source })
    }
}

impl Drop for Repaired {
    /// What was repaired before an error stays, as with Java's tool.
    fn drop(&mut self) {
        let _told_already = self.finish();
    }
}

/// Prints what a log holds.
struct Printer<'p> {
    is_json: bool,
    dates: Dates,
    path: &'p Path,
    /// The text of the last transaction, kept for its capacity.
    text: RefCell<Vec<u8>>,
}

impl Printer<'_> {
    fn content(&self, why: String) -> Failed {
        Failed::Content { path: self.path.to_owned(), why }
    }

    fn header(&self, header: Header, out: &mut dyn Write) -> Result<(), Failed> {
        let Header { dbid, version, .. } = header;
        if self.is_json {
            writeln!(
                out,
                "{}",
                json!({ "file": self.path.display().to_string(), "dbid": dbid, "version": version })
            )?;
        } else {
            writeln!(
                out,
                "ZooKeeper Transactional Log File with dbid {dbid} txnlog format version {version}"
            )?;
        }
        Ok(())
    }

    fn txn(&self, record: &RawRecord<'_>, prefix: &str, out: &mut dyn Write) -> Result<(), Failed> {
        let foreign = |why| self.content(why);
        if self.is_json {
            let object = txn_text::json(record.entry, record.stored == record.actual());
            writeln!(out, "{}", object.map_err(foreign)?)?;
        } else {
            let mut text = self.text.borrow_mut();
            text.clear();
            text.extend_from_slice(prefix.as_bytes());
            txn_text::put_text(record.entry, &self.dates, &mut text).map_err(foreign)?;
            out.write_all(&text)?;
        }
        Ok(())
    }

    fn end(&self, count: u64, out: &mut dyn Write) -> Result<(), Failed> {
        if self.is_json {
            writeln!(out, "{}", json!({ "transactions": count }))?;
        } else {
            writeln!(out, "EOF reached after {count} txns.")?;
        }
        Ok(())
    }

    fn repaired(&self, repaired: &Repaired, out: &mut dyn Write) -> Result<(), Failed> {
        let (path, fixed) = (repaired.path.display(), repaired.fixed);
        if self.is_json {
            writeln!(out, "{}", json!({ "recovery_file": path.to_string(), "fixed": fixed }))?;
        } else {
            writeln!(out, "Recovery file {path} has been written with {fixed} fixed CRC error(s)")?;
        }
        Ok(())
    }
}
