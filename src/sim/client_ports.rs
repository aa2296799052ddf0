//! The client port of a server, which a reconfiguration moves, as `net::client_port` does it.
//!
//! Clients of worlds find every port that is bound, as those do that have a list of all. What is checked: no client is served at another
//! port than the configuration in force there names, and every member that has settled serves at that port.

use super::membership;
use super::network::ProcessId;
use super::plan::{MS, Micros};
use super::process::Process;
use super::world::World;
use crate::member::ListenAddress;
use crate::member::listening::ListenStep;
use crate::model::ServerId;
use std::net::{Ipv4Addr, SocketAddr};

impl Process {
    /// Whether the configuration in force names the port at which this process serves clients. A server that is left out of it keeps its
    /// port.
    pub fn serves_where_wanted(&self, server: usize) -> bool {
        let named = self.view().members.get(&ServerId(server as i64));
        let named = named.and_then(|member| member.client.as_ref());
        named.is_none_or(|(_, port)| self.client_port.port == Some(*port))
    }
}

impl World {
    /// Another program takes a port, unless the server has it.
    pub fn take_port(&mut self, server: usize, port: u16, for_us: Micros) {
        let found = &mut self.servers[server];
        if found.process.as_ref().is_some_and(|process| process.client_port.port == Some(port)) {
            return;
        }
        found.taken_ports.insert(port, self.now_us + for_us);
        self.trace.count("ports taken");
    }

    fn is_taken(&self, server: usize, port: u16) -> bool {
        self.servers[server].taken_ports.get(&port).is_some_and(|&until_us| self.now_us < until_us)
    }

    /// Whether a server can't start because another program has its client port.
    pub fn finds_its_port_taken(&mut self, server: usize) -> bool {
        let found = &self.servers[server];
        if found.taken_ports.is_empty() {
            return false;
        }
        let loaded = membership::load(&found.disk, self.climate(), server, false);
        let port = loaded.ok().and_then(|(config, _)| config.client_port);
        let is_taken = port.is_some_and(|port| self.is_taken(server, port));
        if is_taken {
            self.trace.count("starts refused: client port taken");
        }
        is_taken
    }

    pub fn move_client_port(&mut self, at: ProcessId, place: ListenAddress) {
        let Some(process) = self.process(at) else { return };
        let everywhere = |port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        let bound = process.client_port.port.map(everywhere);
        if process.client_port.machine.move_to(place, bound, None) {
            process.client_port.port = None;
            self.trace.count("client ports moved");
        }
        self.listen(at);
    }

    /// Binds the wanted port, now or after the pause that follows a failure.
    fn listen(&mut self, at: ProcessId) {
        let now_us = self.now_us;
        let Some(process) = self.process(at) else { return };
        let (began_us, now_ms) = (process.began_us, process.own_us(now_us) / 1000);
        let machine = &mut process.client_port.machine;
        let wanted = machine.wanted.as_ref().map(|place| place.port);
        match (machine.listening.next(now_ms), wanted) {
            (ListenStep::Bind, Some(port)) => {
                let is_taken = self.is_taken(at.server, port);
                let Some(process) = self.process(at) else { return };
                if is_taken {
                    process.client_port.machine.listening.bind_failed(now_ms);
                    self.trace.count("client ports that could not be bound");
                    self.listen(at);
                } else {
                    process.client_port.machine.listening.bound();
                    process.client_port.port = Some(port);
                }
            }
            (ListenStep::Wait { until_ms: Some(until_ms) }, _) => {
                self.do_at(began_us + until_ms * MS, move |world| world.listen(at));
            }
            (ListenStep::Bind | ListenStep::Accept | ListenStep::Wait { until_ms: None }, _) => {}
        }
    }

    /// Whether a client that connects finds the client port of a process.
    pub fn is_at_client_port(&mut self, at: ProcessId) -> bool {
        let Some(process) = self.process(at) else { return false };
        let Some(port) = process.client_port.port else {
            self.trace.count("clients that found no port");
            return false;
        };
        if !process.serves_where_wanted(at.server) {
            let what = "which is not the port of its configuration";
            self.fail("configurations", format!("{} serves a client at {port}, {what}", at.server));
        }
        true
    }
}
