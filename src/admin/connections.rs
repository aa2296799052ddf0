//! `cons`, and the short form of its lines in `stat`.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

use super::ConnectionInfo;

/// One connection without its line end; `brief` leaves the session out.
///
/// Source: `ServerCnxn.dumpConnectionInfo`, ZooKeeper 3.9.5.
pub(super) fn render(connection: &ConnectionInfo, brief: bool) -> String {
    let interest = u8::from(connection.reads) | u8::from(connection.writes) << 2;
    let mut text = format!(
        " {}[{interest:x}](queued={},recved={},sent={}",
        java_address(connection.remote),
        connection.outstanding,
        connection.received,
        connection.sent
    );
    if let Some(session) = connection.session.as_ref().filter(|_| !brief) {
        let cxid = session.last_cxid.map(|cxid| format!(",lcxid={cxid:#x}")).unwrap_or_default();
        // Without a zxid Java prints -1, as an unsigned number.
        let zxid = session.last_zxid.map_or(-1, |zxid| zxid.to_wire());
        _ = write!(
            text,
            ",sid={:#x},lop={},est={},to={}{cxid},lzxid={zxid:#x},lresp={},llat={},minlat={},avglat={},maxlat={}",
            session.id,
            session.last_operation,
            session.established_ms,
            session.timeout_ms,
            session.last_response_ms,
            session.last_latency_ms,
            session.min_latency_ms,
            session.avg_latency_ms,
            session.max_latency_ms,
        );
    }
    text.push(')');
    text
}

/// `InetSocketAddress.toString` of an address that was never resolved, JDK 14 and later.
///
/// An IPv6 address is written out in full, and an IPv4-mapped IPv6 address is an IPv4 address.
pub(super) fn java_address(address: SocketAddr) -> String {
    let port = address.port();
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => format!("/{ip}:{port}"),
        IpAddr::V6(ip) => {
            let groups = ip.segments().map(|group| format!("{group:x}"));
            format!("/[{}]:{port}", groups.join(":"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::SessionInfo;
    use crate::model::Zxid;

    fn connection() -> ConnectionInfo {
        let session = SessionInfo {
            id: 0x0100_0023_f150_0000,
            last_operation: "GETD",
            established_ms: 1_795_261_858_426,
            timeout_ms: 10_000,
            last_cxid: Some(2),
            last_zxid: Zxid::from_wire(1),
            last_response_ms: 2_446_616,
            last_latency_ms: 1,
            min_latency_ms: 0,
            avg_latency_ms: 6,
            max_latency_ms: 12,
        };
        ConnectionInfo {
            remote: "127.0.0.1:53682".parse().unwrap(),
            reads: true,
            writes: false,
            outstanding: 0,
            received: 3,
            sent: 3,
            session: Some(session),
        }
    }

    // rows: W-11
    #[test]
    fn lines_are_those_of_a_java_server() {
        let full = " /127.0.0.1:53682[1](queued=0,recved=3,sent=3,sid=0x1000023f1500000,lop=GETD,est=1795261858426,to=10000,lcxid=0x2,lzxid=0x1,lresp=2446616,llat=1,minlat=0,avglat=6,maxlat=12)";
        assert_eq!(render(&connection(), false), full);
        let brief = " /127.0.0.1:53682[1](queued=0,recved=3,sent=3)";
        assert_eq!(render(&connection(), true), brief);

        let mut fresh = connection();
        let session = fresh.session.as_mut().unwrap();
        (session.last_cxid, session.last_zxid, session.last_operation) = (None, None, "NA");
        assert!(render(&fresh, false).contains("to=10000,lzxid=0xffffffffffffffff,lresp="));
        fresh.session = None;
        assert_eq!(render(&fresh, false), brief);
    }

    #[test]
    fn addresses_are_written_as_java_does() {
        let shown = |text: &str| java_address(text.parse().unwrap());
        assert_eq!(shown("[::1]:80"), "/[0:0:0:0:0:0:0:1]:80");
        assert_eq!(shown("[fe80::a:b]:80"), "/[fe80:0:0:0:0:0:a:b]:80");
        assert_eq!(shown("[::ffff:10.0.0.1]:80"), "/10.0.0.1:80");
    }
}
