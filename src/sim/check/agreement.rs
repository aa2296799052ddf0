//! All serve one history; what stands in it was proposed, once; and no server ever goes back in it (I-2, I-3, I-4, I-10,
//! I-14).

use super::{Check, Seen};
use crate::model::Zxid;
use crate::sim::truth::Truth;
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Agreement {
    /// How far each server has served.
    served: BTreeMap<usize, Zxid>,
}

impl Check for Agreement {
    fn name(&self) -> &'static str {
        "agreement"
    }

    fn see(&mut self, seen: &Seen<'_>, truth: &Truth) -> Result<(), String> {
        match *seen {
            Seen::Logs { server, zxid, entry } => match truth.proposal(zxid) {
                Some(proposed) if proposed[..] != *entry => {
                    Err(format!("{server} logs as {zxid} what was not proposed as that"))
                }
                _ => Ok(()),
            },
            Seen::Leads { server, last, .. } | Seen::Applied { server, last, .. } => {
                if last != Zxid::ZERO && truth.find(last).is_none() {
                    let end = truth.last();
                    return Err(format!(
                        "{server} serves {last}, which is not committed: that ends with {end}"
                    ));
                }
                match self.served.insert(server, last) {
                    Some(before) if last < before => {
                        Err(format!("{server} serves {last}, and had served {before}"))
                    }
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::planted::{fails, holds, truth, zxid};
    use super::*;

    #[test]
    fn another_history_and_steps_back_are_found() {
        let (mut check, truth) = (Agreement::default(), truth());
        let applied = |server, last| Seen::Applied { server, last, digest: 0, leads: None };
        holds(&mut check, &applied(0, zxid(1, 3)), &truth);
        holds(&mut check, &applied(1, Zxid::ZERO), &truth);
        fails(&mut check, &applied(0, zxid(1, 2)), &truth, "had served 0x100000003");
        fails(&mut check, &applied(1, zxid(1, 5)), &truth, "not committed");
        fails(&mut check, &applied(2, zxid(2, 1)), &truth, "not committed");
        let logs = |entry| Seen::Logs { server: 2, zxid: zxid(1, 2), entry };
        let right = truth.proposal(zxid(1, 2)).unwrap().clone();
        holds(&mut check, &logs(&right), &truth);
        fails(&mut check, &logs(b"other"), &truth, "what was not proposed");
    }
}
