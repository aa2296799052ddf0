//! Tells systemd that the server has started and that it stops (`Type=notify`): a datagram to the socket that it names.

use crate::config::Environment;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The socket to notify; `None`: no service manager waits.
#[derive(Clone, Debug, Default)]
pub struct ServiceManager {
    socket: Option<String>,
}

impl ServiceManager {
    pub fn of(env: &Environment) -> Self {
        Self { socket: env.get("NOTIFY_SOCKET").filter(|name| !name.is_empty()).cloned() }
    }

    /// The data is loaded, the ports are open, and the server serves or takes part in elections.
    pub fn started(&self) {
        self.notify("READY=1");
    }

    /// TERM or INT has come.
    pub fn stopping(&self) {
        self.notify("STOPPING=1");
    }

    fn notify(&self, state: &str) {
        let Some(name) = &self.socket else { return };
        if let Err(error) = send(name, state) {
            tracing::warn!(
                %error,
                socket = %name,
                "can't tell systemd {state}; if it waits for it, set Type=simple in the unit"
            );
        }
    }
}

/// A name that begins with `@` is of Linux's abstract namespace.
fn send(name: &str, state: &str) -> io::Result<()> {
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    // A service manager that doesn't read must not hold the server up.
    socket.set_nonblocking(true)?;
    socket.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manager(name: &str) -> ServiceManager {
        ServiceManager::of(&[("NOTIFY_SOCKET".to_owned(), name.to_owned())].into())
    }

    fn heard(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    #[test]
    fn states_reach_sockets_of_both_kinds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let manager_of_path = manager(path.to_str().unwrap());
        manager_of_path.started();
        manager_of_path.stopping();
        assert_eq!((heard(&socket), heard(&socket)), ("READY=1".into(), "STOPPING=1".into()));

        let name = format!("oxkeeper-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        manager(&format!("@{name}")).started();
        assert_eq!(heard(&socket), "READY=1");
    }

    #[test]
    fn server_goes_on_if_the_notify_socket_is_missing_or_unset() {
        for name in ["", "/nowhere/at/all", "@", &"x".repeat(500)] {
            manager(name).started();
        }
        ServiceManager::of(&Environment::new()).started();
        assert!(send("/nowhere/at/all", "READY=1").is_err());
    }
}
