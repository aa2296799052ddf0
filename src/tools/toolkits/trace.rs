//! `TraceFormatter`: the requests in a trace file of old releases of ZooKeeper; servers of today write none.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::Path;

use super::dates::Dates;
use super::txn_text::op_name;
use super::{Failed, INVALID_INVOCATION, Outcome, Streams};
use crate::model::op;

const USAGE: &str = "USAGE: TraceFormatter trace_file";

/// Prints one line a request. As in Java the end of the file is an error, so no call has exit code 0.
///
/// # Errors
/// [`Failed`]: a file that can't be read, and its end.
///
/// Source: `TraceFormatter`, ZooKeeper 3.9.5.
pub fn run(arguments: &[String], streams: &mut Streams<'_>) -> Outcome {
    let [path] = arguments else {
        writeln!(streams.err, "{USAGE}")?;
        return Ok(INVALID_INVOCATION);
    };
    let path = Path::new(path);
    let failed = |source| Failed::File { path: path.to_owned(), source };
    let mut file = BufReader::new(File::open(path).map_err(failed)?);
    let dates = Dates::of_machine();
    loop {
        let line = request(&mut file, &dates).map_err(failed)?;
        writeln!(streams.out, "{line}")?;
    }
}

/// The next request as a line of text.
fn request(file: &mut impl Read, dates: &Dates) -> io::Result<String> {
    let application = i8::from_be_bytes(array(file)?);
    let time = dates.short(i64::from_be_bytes(array(file)?));
    let session = i64::from_be_bytes(array(file)?);
    let cxid = i32::from_be_bytes(array(file)?);
    let zxid = i64::from_be_bytes(array(file)?);
    let txn_type = i32::from_be_bytes(array(file)?);
    let kind = i32::from_be_bytes(array(file)?);
    let length = i32::from_be_bytes(array(file)?);
    let damaged = || io::Error::from(ErrorKind::InvalidData);
    let mut body = Vec::new();
    let bytes = u64::try_from(length).map_err(|_| damaged())?;
    file.by_ref().take(bytes).read_to_end(&mut body)?;
    let path = match kind {
        op::CREATE_SESSION => None,
        _ if body.is_empty() => None,
        _ => Some(path(&body).ok_or_else(damaged)?),
    };
    let path = path.as_deref().unwrap_or("n/a");
    // Java makes a UTF-16 unit of the signed byte.
    let application = char::from_u32((i16::from(application) as u16).into()).unwrap_or('?');
    let name = op_name(kind);
    Ok(format!(
        "{time}: {application} id=0x{session:x} cxid={cxid} op={name} zxid=0x{zxid:x} txnType={txn_type} len={length} path={path}"
    ))
}

fn array<const N: usize>(file: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The path at the beginning of a request's body, after its length.
fn path(body: &[u8]) -> Option<String> {
    let (length, rest) = body.split_first_chunk()?;
    let length = usize::try_from(i32::from_be_bytes(*length)).ok()?;
    Some(String::from_utf8_lossy(rest.get(..length)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        // rows: T-10
        #[test]
        fn damaged_trace_ends_the_tool_without_a_panic(bytes in proptest::collection::vec(0_u8.., 0..400)) {
            let (mut file, dates) = (&bytes[..], Dates::of_machine());
            while request(&mut file, &dates).is_ok() {}
        }
    }
}
