//! Writes the configuration files that a reconfiguration changes; `config::dynamic` gives their texts.
//!
//! The data directory has a copy of the last configuration that was in force, because an operator may write zoo.cfg anew.

use super::ConfigChange;
use crate::config::dynamic::{self, BACKUP, NEXT};
use crate::model::{Epoch, View};
use crate::store::Disk;
use crate::store::disk::{read_file, remove_for_good, remove_if_there, replace_file, temporary};
use crate::store::epoch::{self, EpochFile};
use std::collections::BTreeSet;
use std::io;
use std::num::ParseIntError;
use std::path::{Path, PathBuf};

/// Ending of the file that is written and removed at the start.
const TRIED_OUT: &str = ".dynamic.try";

/// Length of that file. A full disk takes a file without bytes.
const TRIED_OUT_BYTES: usize = 16 << 10;

/// Name of the copy of the last configuration that was in force, in `version-2` of `dataDir`. Java does not look at it.
pub const LAST_IN_FORCE: &str = "lastConfiguration";

/// Line before a version beside which the copy counts, because that one is older and has come in force after it.
const BESIDE: &str = "#beside ";

/// Begins each line of the last configuration of an epoch that this server had promised.
const PROMISED: &str = "#promised ";

/// Begins each line of the configurations that zoo.cfg may name.
const NAMED: &str = "#named ";

/// A copy of the last configuration that was in force.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LastInForce {
    pub view: View,
    /// The last one of an epoch that this server had promised, if `view` is of a later one: this server has only heard of that.
    pub promised: Option<View>,
    /// Versions of the older configurations that were put in force afterwards, and together with which `view` counts. All of them stay, because
    /// zoo.cfg names one of them until it names the next.
    pub beside: BTreeSet<i64>,
    /// Those besides `view` whose files zoo.cfg may name: before it names the file of the last commit, and then. If the lines in such a file are
    /// others, an operator has written them.
    pub named: Vec<View>,
}

impl LastInForce {
    /// All configurations in the copy.
    pub fn views(&self) -> impl Iterator<Item = &View> {
        std::iter::once(&self.view).chain(&self.promised).chain(&self.named)
    }

    /// Reads the copy in a `version-2` folder of `dataDir`, if it is there.
    ///
    /// # Errors
    /// The path, and the disk's error or what is wrong with the text.
    pub fn read<D: Disk>(disk: &D, snapshots: &Path) -> Result<Option<Self>, (PathBuf, io::Error)> {
        let path = snapshots.join(LAST_IN_FORCE);
        match read_file(disk, &path).and_then(|text| Self::parse(&text)) {
            Ok(last) => Ok(Some(last)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err((path, error)),
        }
    }

    /// The newest one that this server has promised. When the copy was made, it may only have heard of that one. Versions above that of `view`
    /// were in force before it.
    pub fn newest_promised(&self, accepted: Epoch) -> Option<&View> {
        let counts =
            |known: &&View| known.version <= self.view.version && known.is_promised(accepted);
        self.views().filter(counts).max_by_key(|known| known.version)
    }

    /// * `known`: the copy so far. `accepted`: the last promise.
    pub fn after(known: Option<Self>, view: &View, accepted: Epoch) -> Self {
        let known = known.filter(|_| !view.is_promised(accepted));
        let promised = known.and_then(|known| known.newest_promised(accepted).cloned());
        Self { view: view.clone(), promised, beside: BTreeSet::new(), named: Vec::new() }
    }

    fn parse(text: &[u8]) -> io::Result<Self> {
        let view = View::from_bytes(text).map_err(io::Error::other)?;
        let text = std::str::from_utf8(text).map_err(io::Error::other)?;
        let promised = views_after(PROMISED, text)?.pop();
        let beside = text.lines().filter_map(|line| line.strip_prefix(BESIDE));
        let beside: Result<_, ParseIntError> =
            beside.map(|version| i64::from_str_radix(version, 16)).collect();
        let (beside, named) = (beside.map_err(io::Error::other)?, views_after(NAMED, text)?);
        Ok(Self { view, promised, beside, named })
    }

    fn text(&self) -> String {
        let promised = self.promised.iter().map(|view| (PROMISED, view));
        let named = self.named.iter().map(|view| (NAMED, view));
        let mut text = String::new();
        for (prefix, view) in promised.chain(named) {
            view.to_string().lines().for_each(|line| text.extend([prefix, line, "\n"]));
        }
        text.extend(self.beside.iter().map(|version| format!("{BESIDE}{version:x}\n")));
        text + &self.view.to_string()
    }
}

/// The configurations whose lines begin with `prefix`; each one's version is its last line.
fn views_after(prefix: &str, text: &str) -> io::Result<Vec<View>> {
    let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(prefix)).collect();
    let texts = lines.split_inclusive(|line| line.starts_with("version="));
    texts.map(|lines| View::parse(&lines.join("\n")).map_err(io::Error::other)).collect()
}

/// The files of a member whose ensemble may change while it runs.
#[derive(Clone, Debug)]
pub struct ConfigFiles<D> {
    disk: D,
    /// The static file, by the path that was given at start.
    config_file: PathBuf,
    /// The absolute path of the static file; dynamic files are named in it by absolute paths too.
    absolute: PathBuf,
    /// The `version-2` folder of `dataDir`.
    snapshots: PathBuf,
}

impl<D: Disk> ConfigFiles<D> {
    /// * `disk`: not one that stops at its first error: a folder of settings that can't be written to must not end a
    ///   server whose data is safe.
    /// * `absolute`: the absolute path of `config_file`. `snapshots`: the `version-2` folder of `dataDir`.
    pub const fn new(disk: D, config_file: PathBuf, absolute: PathBuf, snapshots: PathBuf) -> Self {
        Self { disk, config_file, absolute, snapshots }
    }

    /// The folder of the files.
    pub fn folder(&self) -> &Path {
        self.absolute.parent().unwrap_or(&self.absolute)
    }

    /// Performs a change.
    ///
    /// # Errors
    /// The disk's error; [`ConfigChange::failed`] decides what follows.
    pub fn change(&self, change: &ConfigChange) -> io::Result<()> {
        match change {
            ConfigChange::CopyStaticFile => self.back_up(),
            ConfigChange::TestFolder => self.try_out(),
            ConfigChange::InForce { view } => self.keep_in_force(view),
            ConfigChange::Proposed { views, beside } => self.propose(views, beside.as_ref()),
            ConfigChange::Forgotten => self.forget_proposed(),
            ConfigChange::Committed { view, has_client, removes_proposed } => {
                self.commit(view, *has_client, *removes_proposed)
            }
        }
    }

    /// Copies the static file while it still names the members, which a reconfiguration may move to a dynamic file (D-10).
    ///
    /// # Errors
    /// The disk's error; nothing has changed then.
    pub fn back_up(&self) -> io::Result<()> {
        let text = read_file(&self.disk, &self.config_file)?;
        replace_file(&self.disk, &dynamic::beside(&self.config_file, BACKUP), &text)
    }

    /// Writes a file that is longer than most configurations, and removes it. A server with less room would be elected, and then end because
    /// its configuration can't be written, at each start again.
    ///
    /// # Errors
    /// What the disk says.
    pub fn try_out(&self) -> io::Result<()> {
        let path = dynamic::beside(&self.config_file, TRIED_OUT);
        remove_if_there(&self.disk, &path)?; // One that a crash left may take the room.
        if let Err(error) = replace_file(&self.disk, &path, &[0; TRIED_OUT_BYTES]) {
            // So that the server itself does not fill the folder. The first error counts.
            let _ = remove_if_there(&self.disk, &temporary(&path));
            return Err(error);
        }
        remove_if_there(&self.disk, &path).map(drop)
    }

    /// Keeps the configurations that are proposed and not yet committed (D-09).
    ///
    /// * `views`: oldest first, at least one. `beside`: the configuration in force, if its operator has written it.
    ///
    /// # Errors
    /// As [`ConfigFiles::back_up`].
    pub fn propose(&self, views: &[View], beside: Option<&View>) -> io::Result<()> {
        let text = dynamic::proposed(views, beside);
        replace_file(&self.disk, &dynamic::beside(&self.config_file, NEXT), text.as_bytes())
    }

    /// Removes the configurations that [`ConfigFiles::propose`] has kept. They count at the next start if they are there, so
    /// no power cut may bring them back.
    ///
    /// # Errors
    /// As [`ConfigFiles::back_up`].
    pub fn forget_proposed(&self) -> io::Result<()> {
        remove_for_good(&self.disk, &dynamic::beside(&self.config_file, NEXT)).map(drop)
    }

    /// Makes a committed configuration the one of the next start (D-08, D-11).
    ///
    /// * `has_client`: whether this server's own line has a client address.
    /// * `removes_proposed`: whether no newer configuration was proposed, so that `.dynamic.next` is of no more use.
    ///
    /// # Errors
    /// The disk's error. The older configuration stays the one of the next start until the last but one step.
    pub fn commit(&self, view: &View, has_client: bool, removes_proposed: bool) -> io::Result<()> {
        self.copy_to_data(view, removes_proposed)?;
        let dynamic_file = dynamic::path_of(&self.config_file, view.version);
        replace_file(&self.disk, &dynamic_file, dynamic::decided(view).as_bytes())?;
        let text = read_file(&self.disk, &self.config_file)?;
        let name = dynamic::path_of(&self.absolute, view.version);
        let text = dynamic::static_naming(&text, &name.to_string_lossy(), has_client)
            .map_err(io::Error::other)?;
        replace_file(&self.disk, &self.config_file, &text)?;
        if removes_proposed {
            self.forget_proposed()?;
        }
        Ok(())
    }

    /// Copies the configuration of a start to the data directory, unless that has a copy of it.
    ///
    /// # Errors
    /// The disk's error.
    pub fn keep_in_force(&self, view: &View) -> io::Result<()> {
        let known = LastInForce::read(&self.disk, &self.snapshots).map_err(|(_, error)| error)?;
        match known {
            Some(known) if known.views().any(|it| it.version == view.version) => Ok(()),
            // A crash came before zoo.cfg named the newest one, or an operator has put back this one.
            Some(mut known) if view.version < known.view.version => {
                known.named.push(view.clone());
                self.save_copy(&known)
            }
            known => self.save_copy(&LastInForce::after(known, view, self.accepted())),
        }
    }

    /// Copies a configuration that comes in force to the data directory. A newer one that was in force here stays there until this server
    /// knows that it has been replaced.
    fn copy_to_data(&self, view: &View, is_last: bool) -> io::Result<()> {
        let known = LastInForce::read(&self.disk, &self.snapshots).map_err(|(_, error)| error)?;
        let static_file = read_file(&self.disk, &self.config_file).ok();
        let version = static_file.and_then(|text| dynamic::version_named(&text));
        let is_named =
            |known: &&View| Some(known.version) == version && known.version != view.version;
        let named = known.as_ref().and_then(|known| known.views().find(is_named)).cloned();
        let mut copy = match known {
            Some(known) if !is_last && view.version < known.view.version => known,
            known => LastInForce::after(known, view, self.accepted()),
        };
        if view.version < copy.view.version {
            copy.beside.insert(view.version);
        }
        copy.named = named.into_iter().chain([view.clone()]).collect();
        copy.named.retain(|view| view.version != copy.view.version);
        self.save_copy(&copy)
    }

    /// The last promise. If it can't be read, none counts.
    fn accepted(&self) -> Epoch {
        let found = epoch::read(&self.disk, &self.snapshots, EpochFile::Accepted);
        found.ok().flatten().unwrap_or_default()
    }

    fn save_copy(&self, copy: &LastInForce) -> io::Result<()> {
        replace_file(&self.disk, &self.snapshots.join(LAST_IN_FORCE), copy.text().as_bytes())
    }
}
