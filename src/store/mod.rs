//! The durable state of a server: transaction log, snapshots, epoch files, and the recovery from them.
//!
//! The room knows bytes, file names and zxids. What an entry or a znode means is for the tree, which implements
//! [`Restore`].
//!
//! Reading order: [`disk`] (the only access to the file system), [`names`], [`record`] and [`log`] (append, flush,
//! truncate), [`scan`] (reading a whole log back), [`log_copies`] (files that only look like logs), [`raw_records`] (reading a damaged one),
//! [`snapshot`] and [`snapshot_read`] (and their compression),
//! [`epoch`], [`truncation_check`] (the check before a truncation), [`decide`] (the decisions of recovery, as tables),
//! [`mod@recover`] (which follows those tables), [`quarantine`] (a member's data that can't be recovered),
//! [`start`], [`worker`] (the work of the log thread), [`replaced_files`] (files that a restored snapshot replaces), [`purge`].
//!
//! # Invariants
//! 1. Nothing is reported flushed before fsync has returned, and the folder entry of its file is durable by then.
//! 2. An older log file is whole and durable before a newer one exists, so only the newest can be torn by a crash.
//! 3. After a disk's first error nothing more is written to it ([`disk::FailStop`]).
//! 4. No allocation is sized by a length that was read, only by bytes that are there.
//!
//! # Not here
//! Which role may append (`zab`), when to take a snapshot (`replica`), what entries and nodes mean (`tree`).

#![allow(clippy::disallowed_methods, reason = "the log thread measures its syncs")]

pub mod decide;
pub mod differing;
pub mod disk;
pub mod doubted;
pub mod epoch;
pub mod log;
pub mod log_copies;
pub mod log_folder;
pub mod log_read;
pub mod log_thread;
pub mod names;
mod packing;
pub mod purge;
pub mod quarantine;
pub mod raw_records;
pub mod record;
pub mod recover;
mod recover_error;
pub mod replaced_files;
pub mod scan;
pub mod sim_disk;
mod sim_inode;
pub mod snapshot;
pub mod snapshot_read;
pub mod start;
pub mod truncation_check;
pub mod worker;

pub use disk::{Disk, FailStop, RealDisk};
pub use log::{Log, LogError, LogOptions};
pub use names::{Folders, Packing};
pub use recover::{RecoverError, RecoverOptions, Recovered, Restore, recover};
pub use snapshot::{DigestTrailer, Draft, SnapshotError, SnapshotWriter, Trailers};
pub use snapshot_read::{Progress, SnapshotReader};
pub use worker::{Command, Event, Worker};
