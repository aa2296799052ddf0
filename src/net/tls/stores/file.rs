//! Files of stores and passwords.

use super::error::Fault;
use crate::config::tls::StorePassword;
use crate::model::Secret;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Limit on the size of a store file.
const FILE_LEN_MAX: u64 = 16 << 20;
const PASSWORD_FILE_LEN_MAX: u64 = 64 << 10;

/// The bytes of a store.
pub(in crate::net::tls) fn read_store(path: &Path) -> Result<Zeroizing<Vec<u8>>, Fault> {
    read_bounded(path, FILE_LEN_MAX)
}

fn read_bounded(path: &Path, len_max: u64) -> Result<Zeroizing<Vec<u8>>, Fault> {
    // The read of a pipe would not end before its writer does.
    if !std::fs::metadata(path).map_err(Fault::Read)?.is_file() {
        return Err(Fault::NotAFile);
    }
    let file = File::open(path).map_err(Fault::Read)?;
    let mut data = Zeroizing::new(Vec::new());
    file.take(len_max + 1).read_to_end(&mut data).map_err(Fault::Read)?;
    if data.len() as u64 > len_max {
        return Err(Fault::TooLarge);
    }
    Ok(data)
}

/// The password; one newline at the end of a file is removed, as Java does.
pub(super) fn read_password(password: &StorePassword) -> Result<Option<Arc<Secret>>, Fault> {
    let path = match password {
        StorePassword::None => return Ok(None),
        StorePassword::Given(secret) => return Ok(Some(secret.clone())),
        StorePassword::File(path) => path,
    };
    let bytes = read_bounded(path, PASSWORD_FILE_LEN_MAX).map_err(|fault| {
        let reason = match fault {
            Fault::Read(reason) => reason,
            Fault::NotAFile => io::Error::other("it is not a file"),
            _ => io::Error::other("it has more than 64 KiB, which no password has"),
        };
        Fault::PasswordFile { path: path.clone(), reason }
    })?;
    let password = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    Ok(Some(Arc::new(Secret::new(password.to_vec()))))
}

pub(super) fn text(password: &Secret) -> Result<&str, Fault> {
    std::str::from_utf8(password.reveal()).map_err(|_| Fault::PasswordText)
}
