//! The system's GSSAPI library (MIT's `libgssapi_krb5.so.2`), loaded when Kerberos is configured. All unsafe code of the server is
//! here.
//!
//! # Safety
//! The types of the functions are those of RFC 2744 and of `gssapi_ext.h`, as the library has had them since release 1.11 (2012);
//! the file name's `.2` stands for that interface. The library is never unloaded, so pointers to its functions stay valid. It
//! copies what it is given and keeps no pointer to it after a call. What it gives is copied and released at once, or is a handle
//! that its owner releases once, in `drop`. Its handles may be used by any thread, each by one at a time, which `&mut` or
//! ownership of the handle ensures; credentials are locked by the library itself.
//!
//! Calls may wait for a disk or a KDC, so only threads that may block make them.

#![allow(unsafe_code, reason = "C functions are called")]

mod functions;

use functions::{Buffer, Handle, KERBEROS, OidSet, PRINCIPAL, Store, StoreEntry, oid};
pub use functions::{Gss, GssError, library};
use std::ffi::{CString, c_int};
use std::path::Path;
use std::ptr::{null, null_mut};

/// Limit on one output of the library.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
const INDEFINITE: u32 = u32::MAX;
const CONTINUE_NEEDED: u32 = 1;
/// Calling and routine errors; the lower half of a status only informs.
const ERRORS: u32 = 0xffff_0000;
const USAGE_INITIATE: c_int = 1;
const USAGE_ACCEPT: c_int = 2;
/// Mutual authentication and integrity.
const FLAGS: u32 = 2 | 32;
const STATUS_GSS: c_int = 1;
const STATUS_MECHANISM: c_int = 2;

/// Names the configuration file of the library, `krb5.conf`. The library reads the name from the process's environment, which only
/// a process with a single thread may change.
///
/// # Panics
/// When there is a second thread already.
pub fn set_configuration(file: &Path) {
    let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    assert_eq!(threads, 1, "the environment is changed before the first thread is started");
    // SAFETY: no other thread reads the environment, as this is the only one.
    unsafe { std::env::set_var("KRB5_CONFIG", file) };
}

impl Gss {
    /// Copies an output of the library, and releases it.
    fn copied(&self, mut buffer: Buffer) -> Vec<u8> {
        let mut bytes = Vec::new();
        if !buffer.value.is_null() && buffer.len <= OUTPUT_BYTES_MAX {
            // SAFETY: the library has filled in pointer and length of an allocation of its own, which lives until it is released
            // below.
            bytes.extend(unsafe {
                std::slice::from_raw_parts(buffer.value.cast::<u8>(), buffer.len)
            });
        }
        // SAFETY: the buffer is the library's own or empty; both may be released, and it is used no more after this.
        unsafe { (self.release_buffer)(&mut 0, &mut buffer) };
        bytes
    }

    fn check(&self, major: u32, minor: u32) -> Result<(), GssError> {
        if major & ERRORS == 0 {
            return Ok(());
        }
        let mut texts = Vec::new();
        for (code, kind) in [(major, STATUS_GSS), (minor, STATUS_MECHANISM)] {
            let (mut more, mut text) = (0, Buffer::EMPTY);
            // SAFETY: all pointers are to locals, and no mechanism (null) means the default one.
            unsafe {
                (self.display_status)(&mut 0, code, kind, null_mut(), &mut more, &mut text);
            }
            let text = String::from_utf8_lossy(&self.copied(text)).into_owned();
            texts.extend((code != 0 && !text.is_empty()).then_some(text));
        }
        Err(GssError::Call(texts.join(": ")))
    }

    /// A principal's name.
    ///
    /// # Errors
    /// When it is no name.
    pub fn name(&'static self, principal: &str) -> Result<Name, GssError> {
        let (mut minor, mut handle) = (0, null_mut());
        let (input, kind) = (Buffer::of(principal.as_bytes()), oid(PRINCIPAL));
        // SAFETY: pointers to locals; the input's bytes live through the call.
        let major = unsafe { (self.import_name)(&mut minor, &input, &kind, &mut handle) };
        self.check(major, minor)?;
        Ok(Name { gss: self, handle })
    }

    /// The realm of names without one; empty if the library's configuration names none.
    pub fn default_realm(&'static self) -> String {
        let name = self.name("x").and_then(|name| name.of_kerberos()?.text());
        name.ok().and_then(|name| Some(name.split_once('@')?.1.to_owned())).unwrap_or_default()
    }

    /// The keys with which this server accepts.
    ///
    /// * `key_tab`: `None`: the library's default. `principal`: `None`: any of the key tab.
    ///
    /// # Errors
    /// When the key tab can't be read, or has no key of the principal.
    pub fn acceptor(
        &'static self,
        key_tab: Option<&Path>,
        principal: Option<&str>,
    ) -> Result<Credential, GssError> {
        // The library's own replay cache, whatever the environment says: a token is taken once.
        let mut store = vec![("rcache", "dfl:".to_owned())];
        store.extend(key_tab.map(|path| ("keytab", format!("FILE:{}", path.display()))));
        self.acquire(USAGE_ACCEPT, principal, store)
    }

    /// What this server dials with.
    ///
    /// * `key_tab`: tickets are asked for with its keys. `cache`: where tickets are; `None`: the library's default.
    ///
    /// # Errors
    /// When neither gives a ticket.
    pub fn initiator(
        &'static self,
        key_tab: Option<&Path>,
        cache: Option<String>,
        principal: Option<&str>,
    ) -> Result<Credential, GssError> {
        let mut store: Vec<_> = cache.map(|cache| ("ccache", cache)).into_iter().collect();
        store.extend(key_tab.map(|path| ("client_keytab", format!("FILE:{}", path.display()))));
        self.acquire(USAGE_INITIATE, principal, store)
    }

    fn acquire(
        &'static self,
        usage: c_int,
        principal: Option<&str>,
        store: Vec<(&str, String)>,
    ) -> Result<Credential, GssError> {
        let name = principal.map(|principal| self.name(principal)).transpose()?;
        let text = |text: &str| CString::new(text).map_err(|_| GssError::ZeroByte);
        let texts: Vec<(CString, CString)> = store
            .iter()
            .map(|(key, value)| Ok((text(key)?, text(value)?)))
            .collect::<Result<_, GssError>>()?;
        let entry = |(key, value): &(CString, CString)| StoreEntry {
            key: key.as_ptr(),
            value: value.as_ptr(),
        };
        let entries: Vec<StoreEntry> = texts.iter().map(entry).collect();
        let store = Store { count: entries.len() as u32, entries: entries.as_ptr() };
        let store = if entries.is_empty() { null() } else { &raw const store };
        let kerberos = oid(KERBEROS);
        let mechanisms = OidSet { count: 1, elements: &kerberos };
        let desired = name.as_ref().map_or(null_mut(), |name| name.handle);
        let (mut minor, mut handle) = (0, null_mut());
        // SAFETY: the store's entries, its texts, the set and the name outlive the call; the two outputs that are not wanted may be
        // null.
        let major = unsafe {
            (self.acquire_from)(
                &mut minor,
                desired,
                INDEFINITE,
                &mechanisms,
                usage,
                store,
                &mut handle,
                null_mut(),
                null_mut(),
            )
        };
        self.check(major, minor)?;
        Ok(Credential { gss: self, handle })
    }
}

/// A principal's name as a handle of the library.
pub struct Name {
    gss: &'static Gss,
    handle: Handle,
}

impl Name {
    /// The name as Kerberos has it, with a realm.
    fn of_kerberos(&self) -> Result<Self, GssError> {
        let (mut minor, mut handle, mechanism) = (0, null_mut(), oid(KERBEROS));
        // SAFETY: the name's handle is not released before it is dropped; the mechanism's bytes are static; the output is a local.
        let major = unsafe {
            (self.gss.canonicalize_name)(&mut minor, self.handle, &mechanism, &mut handle)
        };
        self.gss.check(major, minor)?;
        Ok(Self { gss: self.gss, handle })
    }

    fn text(&self) -> Result<String, GssError> {
        let (mut minor, mut text) = (0, Buffer::EMPTY);
        // SAFETY: the name's handle is not released before it is dropped; the output that is not wanted may be null.
        let major =
            unsafe { (self.gss.display_name)(&mut minor, self.handle, &mut text, null_mut()) };
        let text = self.gss.copied(text);
        self.gss.check(major, minor)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        // SAFETY: the handle is this value's own, and is released once; null is allowed.
        unsafe { (self.gss.release_name)(&mut 0, &mut self.handle) };
    }
}

/// Keys or tickets.
pub struct Credential {
    gss: &'static Gss,
    handle: Handle,
}

// SAFETY: the library's handles are not bound to a thread, and each of these has one owner.
unsafe impl Send for Credential {}
// SAFETY: as above.
unsafe impl Send for Name {}
// SAFETY: as above.
unsafe impl Send for Context {}

impl Drop for Credential {
    fn drop(&mut self) {
        // SAFETY: as for names.
        unsafe { (self.gss.release_cred)(&mut 0, &mut self.handle) };
    }
}

/// One security context, from its first token on.
pub struct Context {
    gss: &'static Gss,
    handle: Handle,
}

/// What follows a token.
#[derive(Debug)]
pub struct Established {
    /// For the peer; may be empty.
    pub token: Vec<u8>,
    /// The context is established. At the accepting end this is the peer's principal.
    pub peer: Option<String>,
}

impl Context {
    pub const fn new(gss: &'static Gss) -> Self {
        Self { gss, handle: null_mut() }
    }

    /// Takes a token of the end that dials.
    ///
    /// # Errors
    /// When it proves nothing: a ticket for another principal or key, too old, or seen before.
    pub fn accept(&mut self, with: &Credential, token: &[u8]) -> Result<Established, GssError> {
        let (mut minor, mut output) = (0, Buffer::EMPTY);
        let (input, mut name) = (Buffer::of(token), Name { gss: self.gss, handle: null_mut() });
        // SAFETY: the context's handle is null or the library's, and the library may replace it; the token lives through the call;
        // outputs that are not wanted may be null. `name` releases what it is given.
        let major = unsafe {
            (self.gss.accept)(
                &mut minor,
                &mut self.handle,
                with.handle,
                &input,
                null_mut(),
                &mut name.handle,
                null_mut(),
                &mut output,
                null_mut(),
                null_mut(),
                null_mut(),
            )
        };
        let token = self.gss.copied(output);
        self.gss.check(major, minor)?;
        let is_established = major & CONTINUE_NEEDED == 0;
        let peer = is_established.then(|| name.text()).transpose()?;
        Ok(Established { token, peer })
    }

    /// Takes a token of the end that accepts, or none at first.
    ///
    /// # Errors
    /// When there is no ticket for `to`, or the other end can't prove that it is `to`.
    pub fn initiate(
        &mut self,
        with: &Credential,
        to: &Name,
        token: &[u8],
    ) -> Result<Established, GssError> {
        let (mut minor, mut output) = (0, Buffer::EMPTY);
        let (input, mechanism) = (Buffer::of(token), oid(KERBEROS));
        // SAFETY: as for `accept`; the mechanism's bytes are static.
        let major = unsafe {
            (self.gss.init)(
                &mut minor,
                with.handle,
                &mut self.handle,
                to.handle,
                &mechanism,
                FLAGS,
                0,
                null_mut(),
                &input,
                null_mut(),
                &mut output,
                null_mut(),
                null_mut(),
            )
        };
        let token = self.gss.copied(output);
        self.gss.check(major, minor)?;
        let peer = (major & CONTINUE_NEEDED == 0).then(String::new);
        Ok(Established { token, peer })
    }

    /// Protects bytes against changes.
    ///
    /// # Errors
    /// When the context is not established.
    pub fn wrap(&mut self, bytes: &[u8]) -> Result<Vec<u8>, GssError> {
        let (mut minor, mut output, input) = (0, Buffer::EMPTY, Buffer::of(bytes));
        // SAFETY: pointers to locals, and the context's own handle.
        let major = unsafe {
            (self.gss.wrap)(&mut minor, self.handle, 0, 0, &input, null_mut(), &mut output)
        };
        let bytes = self.gss.copied(output);
        self.gss.check(major, minor).map(|()| bytes)
    }

    /// The bytes that the peer has protected.
    ///
    /// # Errors
    /// When they were changed, or are of another context.
    pub fn unwrap(&mut self, bytes: &[u8]) -> Result<Vec<u8>, GssError> {
        let (mut minor, mut output, input) = (0, Buffer::EMPTY, Buffer::of(bytes));
        // SAFETY: as for `wrap`.
        let major = unsafe {
            (self.gss.unwrap)(&mut minor, self.handle, &input, &mut output, null_mut(), null_mut())
        };
        let bytes = self.gss.copied(output);
        self.gss.check(major, minor).map(|()| bytes)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: as for names; no output token is wanted.
        unsafe { (self.gss.delete_context)(&mut 0, &mut self.handle, null_mut()) };
    }
}
