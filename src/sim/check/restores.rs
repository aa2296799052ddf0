//! The check of trees that an operator restores (`sim::restores`).

use super::seen::Seen;
use crate::sim::history::History;

/// Only the leader of an epoch restores a tree, whose zxid is after all that was proposed in the epoch. The operator is told that the tree
/// is restored only when it is committed. After that, no epoch begins that is not later than all zxids in the tree. A standalone server,
/// which begins no epochs, gives the tree a zxid that is later than these.
///
/// # Errors
/// What does not hold.
pub fn restores(seen: &Seen<'_>, history: &History) -> Result<(), String> {
    match *seen {
        Seen::Restores { server, zxid, tree } => {
            let leader = history.leaders.get(&zxid.epoch()).map(|(leader, _)| *leader);
            let proposed = history.last_proposal(zxid.epoch());
            if leader != Some(server) {
                let leader =
                    leader.map_or_else(|| "no server".to_owned(), |id| format!("server {id}"));
                return Err(format!("{server} restores {zxid}, and {leader} leads that epoch"));
            }
            let newest = tree.newest_zxid();
            if history.is_alone && zxid <= newest {
                return Err(format!("{server} restores {zxid}, and has znodes of {newest}"));
            }
            match proposed.filter(|proposed| zxid <= *proposed) {
                Some(proposed) => {
                    Err(format!("{server} restores {zxid}, and {proposed} was proposed"))
                }
                None => Ok(()),
            }
        }
        Seen::RestoreEnded { server, zxid, is_done: true } if !history.is_committed(zxid) => {
            Err(format!("{server} says that {zxid} is restored, which is not committed"))
        }
        Seen::Leads { server, epoch, last, .. } => {
            let in_it = history.restores.iter().filter(|(zxid, _)| history.holds(last, **zxid));
            let newest = in_it.map(|(_, tree)| tree.newest_zxid().epoch()).max();
            match newest.filter(|newest| epoch <= *newest) {
                Some(newest) => {
                    let (epoch, newest) = (epoch.0, newest.0);
                    Err(format!("{server} leads epoch {epoch}, and has znodes of epoch {newest}"))
                }
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}
