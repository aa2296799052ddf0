//! A proxy that corrupts what a server sends, to check that the comparison detects it.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

/// What the proxy corrupts. Each fault depends on the bytes alone, so that a second run of a script shows it again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// NodeChildrenChanged never arrives.
    EventLost,
    /// Events arrive after the reply that follows them.
    EventLate,
    /// NodeExists becomes NoNode.
    ErrorCode,
    /// The zxid of replies saying BadVersion is one higher.
    Zxid,
    /// pzxid at the end of a lone Stat is one higher.
    Stat,
    /// The connection is closed in place of a NotEmpty reply.
    Closed,
    /// One bit of the session password is flipped.
    Password,
    /// One byte is appended to each reply that has a body.
    Trailing,
}

impl Fault {
    pub const ALL: [Self; 8] = [
        Self::EventLost,
        Self::EventLate,
        Self::ErrorCode,
        Self::Zxid,
        Self::Stat,
        Self::Closed,
        Self::Password,
        Self::Trailing,
    ];
}

pub struct Proxy {
    pub addr: SocketAddr,
}

impl Proxy {
    /// Listens for as long as the process lives.
    ///
    /// # Errors
    /// When there is no port or thread left.
    pub fn start(to: SocketAddr, fault: Fault) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let addr = listener.local_addr()?;
        thread::Builder::new().spawn(move || {
            for client in listener.incoming().flatten() {
                if let Ok(server) = TcpStream::connect(to) {
                    let _ = join(client, server, fault);
                }
            }
        })?;
        Ok(Self { addr })
    }
}

fn join(client: TcpStream, server: TcpStream, fault: Fault) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut requests, mut to_server) = (client.try_clone()?, server.try_clone()?);
    thread::Builder::new().spawn(move || {
        let _ = io::copy(&mut requests, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Both);
    })?;
    thread::Builder::new().spawn(move || {
        let _ = replies(server, &client, fault);
        let _ = client.shutdown(Shutdown::Both);
    })?;
    Ok(())
}

fn replies(mut server: TcpStream, mut client: &TcpStream, fault: Fault) -> io::Result<()> {
    let mut held: Vec<Vec<u8>> = Vec::new();
    let mut first = true;
    loop {
        let mut head = [0; 4];
        server.read_exact(&mut head)?;
        let mut frame = vec![0; u32::from_be_bytes(head) as usize];
        server.read_exact(&mut frame)?;
        let is_event = !first && frame[..4] == [0xFF; 4];
        match fault {
            Fault::EventLost if is_event && frame[16..20] == [0, 0, 0, 4] => continue,
            Fault::EventLate if is_event => {
                held.push(frame);
                continue;
            }
            Fault::Password if first => frame[20] ^= 1,
            _ if first => {}
            _ => spoil(&mut frame, fault)?,
        }
        first = false;
        held.insert(0, frame);
        for frame in held.drain(..) {
            let len = u32::try_from(frame.len()).expect("a frame came with such a length");
            client.write_all(&[&len.to_be_bytes(), frame.as_slice()].concat())?;
        }
    }
}

/// A reply: xid, zxid, err, body.
fn spoil(frame: &mut Vec<u8>, fault: Fault) -> io::Result<()> {
    let err = i32::from_be_bytes(frame[12..16].try_into().expect("four bytes"));
    match (fault, err) {
        (Fault::ErrorCode, -110) => frame[12..16].copy_from_slice(&(-101_i32).to_be_bytes()),
        (Fault::Zxid, -103) => frame[11] = frame[11].wrapping_add(1),
        (Fault::Stat, 0) if frame.len() == 16 + 68 => frame[83] = frame[83].wrapping_add(1),
        (Fault::Closed, -111) => return Err(io::ErrorKind::ConnectionAborted.into()),
        (Fault::Trailing, 0) if frame.len() > 16 => frame.push(0),
        _ => {}
    }
    Ok(())
}
