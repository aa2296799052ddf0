//! Resolves host names to addresses as Java does.

use rustix::net::{AddressFamily, SocketType, netdevice, socket};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};
use std::process::Command;

/// Names of an address that are looked at.
const NAMES_MAX: usize = 8;

/// The first address of `resolve_all`.
///
/// # Errors
/// When there is no such host, or no such interface.
pub fn resolve(host: &str, port: u16) -> io::Result<SocketAddr> {
    Ok(resolve_all(host, port)?[0])
}

/// The addresses of `host`, at least one: those of IPv4 first.
///
/// * `host`: a name or an address; an IPv6 address without brackets, perhaps with a zone (a number, or the name of one of this
///   machine's interfaces) after `%`.
///
/// # Errors
/// When there is no such host, or no such interface.
///
/// Source: `InetAddress.getByName`, JDK 17, which prefers IPv4.
pub fn resolve_all(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Some((address, zone)) = host.split_once('%')
        && let Ok(address) = address.parse::<Ipv6Addr>()
    {
        let zone = zone.parse().map_or_else(|_| interface(zone), Ok)?;
        return Ok(vec![SocketAddrV6::new(address, port, 0, zone).into()]);
    }
    let mut found: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    sort(&mut found);
    if found.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the host name has no address"));
    }
    Ok(found)
}

/// The names of an address, by the machine's own rules (`getent`: `/etc/hosts`, then DNS, or as the machine says). It may take seconds.
pub fn names_of(address: IpAddr) -> Vec<String> {
    let asked = Command::new("getent").arg("hosts").arg(address.to_string()).output();
    let text = asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    let names = text.lines().flat_map(|line| line.split_whitespace().skip(1));
    names.map(str::to_owned).take(NAMES_MAX).collect()
}

/// The canonical name of a host: the first name of its address, if that leads back to the address; else its own. It may take seconds.
///
/// Source: `QuorumServer.initializeWithAddressString`, ZooKeeper 3.9.5, and `InetAddress.getCanonicalHostName`, JDK 17.
pub fn canonical_name(host: &str) -> String {
    let addresses = |host: &str| {
        let found = resolve_all(host, 0).unwrap_or_default();
        found.into_iter().map(|found| found.ip()).collect()
    };
    canonical_by(host, addresses, names_of)
}

fn canonical_by(
    host: &str,
    addresses: impl Fn(&str) -> Vec<IpAddr>,
    names: impl Fn(IpAddr) -> Vec<String>,
) -> String {
    let address = addresses(host).into_iter().next();
    let named = address.and_then(|address| Some((address, names(address).into_iter().next()?)));
    named
        .filter(|(address, name)| addresses(name).contains(address))
        .map_or_else(|| host.to_owned(), |(_, name)| name)
}

fn sort(found: &mut [SocketAddr]) {
    found.sort_by_key(SocketAddr::is_ipv6); // Keeps the order in each family.
}

/// The number of an interface.
fn interface(name: &str) -> io::Result<u32> {
    // The system call needs a socket, and any will do.
    let asked = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    Ok(netdevice::name_to_index(&asked, name)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: C-186
    #[test]
    fn canonical_name_leads_back_to_the_address() {
        let ip = |last| IpAddr::from([10, 0, 0, last]);
        let addresses = |host: &str| match host {
            "zoo1" | "zoo1.example" => vec![ip(1)],
            "zoo2" => vec![ip(2)],
            "zoo3" => vec![ip(3)],
            _ => Vec::new(),
        };
        let names = |address| match address {
            address if address == ip(1) => vec!["zoo1.example".to_owned(), "other".to_owned()],
            // The owner of the address claims another server's name.
            address if address == ip(2) => vec!["zoo1.example".to_owned()],
            _ => Vec::new(),
        };
        let canonical = |host| canonical_by(host, addresses, names);
        assert_eq!(canonical("zoo1"), "zoo1.example");
        for own in ["zoo2", "zoo3", "unknown"] {
            assert_eq!(canonical(own), own);
        }
        assert!(names_of(IpAddr::from([127, 0, 0, 1])).contains(&"localhost".to_owned()));
    }

    // rows: C-15
    #[test]
    fn an_ipv4_address_is_preferred() {
        let v4: SocketAddr = "127.0.0.1:7".parse().unwrap();
        let v6: [SocketAddr; 2] = ["[::2]:7", "[::1]:7"].map(|v6| v6.parse().unwrap());
        let mut found = [v6[0], v4, v6[1]];
        sort(&mut found);
        assert_eq!(found, [v4, v6[0], v6[1]]);
    }

    // rows: C-15
    #[test]
    fn zone_of_an_ipv6_address_is_read_as_a_number_or_an_interface_name() {
        assert_eq!(resolve("::1", 7).unwrap(), "[::1]:7".parse().unwrap());
        assert_eq!(resolve("fe80:0:0:0:0:0:0:1%5", 7).unwrap(), "[fe80::1%5]:7".parse().unwrap());
        let SocketAddr::V6(at_loopback) = resolve("::%lo", 7).unwrap() else { panic!("IPv6") };
        assert!(at_loopback.scope_id() > 0 && at_loopback.ip().is_unspecified());
        for wrong in ["::1%nosuch", "127.0.0.1%lo", "no such host"] {
            assert!(resolve(wrong, 7).is_err(), "{wrong}");
        }
    }
}
