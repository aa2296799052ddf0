//! Writes the configuration files that a reconfiguration changes; `config::dynamic` gives their texts.

use super::ConfigChange;
use crate::config::dynamic::{self, BACKUP, NEXT};
use crate::model::View;
use crate::store::Disk;
use crate::store::disk::{read_file, remove_for_good, remove_if_there, replace_file};
use std::io;
use std::path::{Path, PathBuf};

/// Ending of the file that is written and removed at the start.
const TRIED_OUT: &str = ".dynamic.try";

/// The files of a member whose ensemble may change while it runs.
#[derive(Clone, Debug)]
pub struct ConfigFiles<D> {
    disk: D,
    /// The static file, by the path that was given at start.
    config_file: PathBuf,
    /// The absolute path of the static file; dynamic files are named in it by absolute paths too.
    absolute: PathBuf,
}

impl<D: Disk> ConfigFiles<D> {
    /// * `disk`: not one that stops at its first error: a folder of settings that can't be written to must not end a
    ///   server whose data is safe.
    /// * `absolute`: the absolute path of `config_file`.
    pub const fn new(disk: D, config_file: PathBuf, absolute: PathBuf) -> Self {
        Self { disk, config_file, absolute }
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

    /// Writes a file and removes it.
    ///
    /// # Errors
    /// What the disk says.
    pub fn try_out(&self) -> io::Result<()> {
        let path = dynamic::beside(&self.config_file, TRIED_OUT);
        replace_file(&self.disk, &path, b"")?;
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
}
