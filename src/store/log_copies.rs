//! Files in the log folder that are named like a log and are none: `log.5.fixed` of `txn-log -r`, `log.5.bak` of an operator. Java takes them for
//! logs, and a start replays old transactions after the newer ones of the log itself.

use super::disk::Disk;
use super::names::{self, Named};
use super::record::{Head, Records, Step, Stop, StopKind, entry_zxid};
use super::scan::{self, FileSource};
use crate::model::Zxid;
use std::io;
use std::path::Path;

/// The first copy that has a transaction after `after`, or is damaged and may have one. It may be meant to take the place of a log that is gone or
/// damaged, so a start neither replays it nor passes over it. A file without the header of a log is no copy of one.
///
/// * `after`: the zxid of the loaded snapshot; `None`: there is none.
///
/// # Errors
/// If the folder can't be listed or a copy can't be read.
pub fn newer<D: Disk>(disk: &D, dir: &Path, after: Option<Zxid>) -> io::Result<Option<Named>> {
    let logs = names::logs(disk, dir)?;
    let has_records = |file: &Named| scan::has_records(disk, &dir.join(&file.name));
    let read = names::logs_after(&logs, after, has_records)?;
    // Logs before the one in which the snapshot was taken had ended by then, and so have their copies.
    let from = read.first().map(|file| file.zxid).filter(|from| Some(*from) <= after);
    let copies = names::log_copies(disk, dir)?.into_iter();
    for copy in copies.filter(|copy| from <= Some(copy.zxid)) {
        let mut records = Records::new(FileSource::open(disk, &dir.join(&copy.name))?);
        if records.head()? != Head::Good {
            continue;
        }
        loop {
            match records.step()? {
                Step::Stop(Stop { kind: StopKind::Clean, .. }) => break,
                Step::Record { entry, .. }
                    if entry_zxid(entry).and_then(Zxid::from_wire) <= after => {}
                Step::Record { .. } | Step::Stop(_) => return Ok(Some(copy)),
            }
        }
    }
    Ok(None)
}
