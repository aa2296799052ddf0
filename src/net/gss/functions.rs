//! The types and functions of the GSSAPI library, and how it is loaded: the unsafe calls are in [`super`], which argues each.

#![allow(unsafe_code, reason = "C functions are declared")]

use libloading::Library;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

const LIBRARY: &str = "libgssapi_krb5.so.2";

/// Why a call failed, in the library's words.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum GssError {
    #[error(
        "Kerberos needs the library libgssapi_krb5.so.2; install it (Debian: libgssapi-krb5-2): {0}"
    )]
    Library(String),
    #[error(
        "Kerberos needs the system's library, and this program is linked statically: install the \
         package without `static` in its name"
    )]
    Static,
    #[error("{0}")]
    Call(String),
    #[error("a name or path has a zero byte")]
    ZeroByte,
}

pub type Handle = *mut c_void;
pub type Minor = *mut u32;

#[repr(C)]
pub struct Buffer {
    pub len: usize,
    pub value: *mut c_void,
}

impl Buffer {
    pub const EMPTY: Self = Self { len: 0, value: null_mut() };

    /// The library reads an input, and never writes to it.
    pub fn of(bytes: &[u8]) -> Self {
        Self { len: bytes.len(), value: bytes.as_ptr().cast_mut().cast() }
    }
}

#[repr(C)]
pub struct Oid {
    pub len: u32,
    pub elements: *const c_void,
}

#[repr(C)]
pub struct OidSet {
    pub count: usize,
    pub elements: *const Oid,
}

#[repr(C)]
pub struct StoreEntry {
    pub key: *const c_char,
    pub value: *const c_char,
}

#[repr(C)]
pub struct Store {
    pub count: u32,
    pub entries: *const StoreEntry,
}

pub fn oid(bytes: &'static [u8]) -> Oid {
    Oid { len: bytes.len() as u32, elements: bytes.as_ptr().cast() }
}

/// The mechanism Kerberos 5.
pub const KERBEROS: &[u8] = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02";
/// A principal's whole name.
pub const PRINCIPAL: &[u8] = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01";

pub type AcquireFrom = unsafe extern "C" fn(
    Minor,
    Handle,
    u32,
    *const OidSet,
    c_int,
    *const Store,
    *mut Handle,
    *mut Handle,
    *mut u32,
) -> u32;
pub type Accept = unsafe extern "C" fn(
    Minor,
    *mut Handle,
    Handle,
    *const Buffer,
    Handle,
    *mut Handle,
    *mut Handle,
    *mut Buffer,
    *mut u32,
    *mut u32,
    *mut Handle,
) -> u32;
pub type Init = unsafe extern "C" fn(
    Minor,
    Handle,
    *mut Handle,
    Handle,
    *const Oid,
    u32,
    u32,
    Handle,
    *const Buffer,
    *mut Handle,
    *mut Buffer,
    *mut u32,
    *mut u32,
) -> u32;
pub type ImportName = unsafe extern "C" fn(Minor, *const Buffer, *const Oid, *mut Handle) -> u32;
pub type CanonicalizeName = unsafe extern "C" fn(Minor, Handle, *const Oid, *mut Handle) -> u32;
pub type DisplayName = unsafe extern "C" fn(Minor, Handle, *mut Buffer, *mut Handle) -> u32;
pub type Wrap =
    unsafe extern "C" fn(Minor, Handle, c_int, u32, *const Buffer, *mut c_int, *mut Buffer) -> u32;
pub type Unwrap =
    unsafe extern "C" fn(Minor, Handle, *const Buffer, *mut Buffer, *mut c_int, *mut u32) -> u32;
pub type DisplayStatus =
    unsafe extern "C" fn(Minor, u32, c_int, Handle, *mut u32, *mut Buffer) -> u32;
pub type ReleaseBuffer = unsafe extern "C" fn(Minor, *mut Buffer) -> u32;
pub type Release = unsafe extern "C" fn(Minor, *mut Handle) -> u32;
pub type DeleteContext = unsafe extern "C" fn(Minor, *mut Handle, *mut Buffer) -> u32;

/// The functions of the library.
pub struct Gss {
    pub acquire_from: AcquireFrom,
    pub accept: Accept,
    pub init: Init,
    pub import_name: ImportName,
    pub canonicalize_name: CanonicalizeName,
    pub display_name: DisplayName,
    pub wrap: Wrap,
    pub unwrap: Unwrap,
    pub display_status: DisplayStatus,
    pub release_buffer: ReleaseBuffer,
    pub release_name: Release,
    pub release_cred: Release,
    pub delete_context: DeleteContext,
}

/// The library, loaded at the first call.
///
/// # Errors
/// When the system has no such library.
pub fn library() -> Result<&'static Gss, GssError> {
    static LOADED: OnceLock<Result<Gss, GssError>> = OnceLock::new();
    LOADED.get_or_init(load).as_ref().map_err(Clone::clone)
}

fn load() -> Result<Gss, GssError> {
    // It would bring another C library into the process, beside the one that is linked.
    if cfg!(target_feature = "crt-static") {
        return Err(GssError::Static);
    }
    let missing = |error: libloading::Error| GssError::Library(error.to_string());
    // SAFETY: the system's Kerberos library has initialisers that may run at any time, as every program linked with it relies on.
    let library = unsafe { Library::new(LIBRARY) }.map_err(missing)?;
    // It stays loaded until the process ends: the functions below are used until then.
    let library = Box::leak(Box::new(library));
    macro_rules! function {
        ($name:literal) => {
            // SAFETY: the field that takes it has the type that the header gives the function of this name.
            *unsafe { library.get($name) }.map_err(missing)?
        };
    }
    Ok(Gss {
        acquire_from: function!(b"gss_acquire_cred_from\0"),
        accept: function!(b"gss_accept_sec_context\0"),
        init: function!(b"gss_init_sec_context\0"),
        import_name: function!(b"gss_import_name\0"),
        canonicalize_name: function!(b"gss_canonicalize_name\0"),
        display_name: function!(b"gss_display_name\0"),
        wrap: function!(b"gss_wrap\0"),
        unwrap: function!(b"gss_unwrap\0"),
        display_status: function!(b"gss_display_status\0"),
        release_buffer: function!(b"gss_release_buffer\0"),
        release_name: function!(b"gss_release_name\0"),
        release_cred: function!(b"gss_release_cred\0"),
        delete_context: function!(b"gss_delete_sec_context\0"),
    })
}
