//! The operations of a run, and their proportions.

use crate::model::op;
use std::fmt;
use std::str::FromStr;

/// An operation, in the order of the table.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Op {
    Get,
    Exists,
    /// The children of one folder, with its stat.
    List,
    Set,
    Create,
    /// Deletes a znode that the same connection created before; if none is left, it creates one.
    Delete,
}

impl Op {
    pub const ALL: [Self; 6] =
        [Self::Get, Self::Exists, Self::List, Self::Set, Self::Create, Self::Delete];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Exists => "exists",
            Self::List => "list",
            Self::Set => "set",
            Self::Create => "create",
            Self::Delete => "delete",
        }
    }

    /// The operation's number in a request header.
    pub const fn kind(self) -> i32 {
        match self {
            Self::Get => op::GET_DATA,
            Self::Exists => op::EXISTS,
            Self::List => op::GET_CHILDREN2,
            Self::Set => op::SET_DATA,
            Self::Create => op::CREATE,
            Self::Delete => op::DELETE,
        }
    }
}

/// Why a mix could not be read.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
pub enum MixError {
    #[error("`{0}` is not an operation: use get, exists, list, set, create, delete")]
    Unknown(String),
    #[error("`{0}` is not a share: use a whole number")]
    Share(String),
    #[error("`{0}` is named twice")]
    Twice(&'static str),
    #[error("all shares are zero")]
    Empty,
}

/// Operations with their shares, of any sum: `get=80,set=15,create=5`. One name alone has the whole share.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mix {
    shares: Vec<(Op, u32)>,
    total: u64,
}

impl Mix {
    /// The operation that a random number falls on.
    pub fn pick(&self, random: u64) -> Op {
        // The high bits, scaled: good enough for shares, and without a division.
        let mut at = ((u128::from(random) * u128::from(self.total)) >> 64) as u64;
        for &(op, share) in &self.shares {
            if at < u64::from(share) {
                return op;
            }
            at -= u64::from(share);
        }
        unreachable!("the shares add up to {}", self.total)
    }

    pub fn has(&self, op: Op) -> bool {
        self.shares.iter().any(|&(other, _)| other == op)
    }
}

impl FromStr for Mix {
    type Err = MixError;

    fn from_str(text: &str) -> Result<Self, MixError> {
        let mut shares: Vec<(Op, u32)> = Vec::new();
        for part in text.split(',').map(str::trim) {
            let (name, share) = part.split_once('=').unwrap_or((part, "1"));
            let op = Op::ALL.into_iter().find(|op| op.name() == name.trim());
            let op = op.ok_or_else(|| MixError::Unknown(name.trim().to_owned()))?;
            let share =
                share.trim().parse().map_err(|_| MixError::Share(share.trim().to_owned()))?;
            if shares.iter().any(|&(other, _)| other == op) {
                return Err(MixError::Twice(op.name()));
            }
            shares.push((op, share));
        }
        shares.retain(|&(_, share)| share > 0);
        let total = shares.iter().map(|&(_, share)| u64::from(share)).sum();
        if total == 0 { Err(MixError::Empty) } else { Ok(Self { shares, total }) }
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [(op, _)] = self.shares[..] {
            return f.write_str(op.name());
        }
        for (at, (op, share)) in self.shares.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{}={share}", op.name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mix_is_read_as_it_is_written() {
        for text in ["get=80,set=15,create=5", "list", "delete=1,exists=4000000000"] {
            assert_eq!(text.parse::<Mix>().unwrap().to_string(), text);
        }
        assert_eq!(" get = 2 , set=0".parse::<Mix>().unwrap().to_string(), "get");
    }

    #[test]
    fn invalid_mix_is_refused_with_the_reason() {
        let of = |text: &str| text.parse::<Mix>().unwrap_err();
        assert_eq!(of("get=1,sync=2"), MixError::Unknown("sync".into()));
        assert_eq!(of(""), MixError::Unknown(String::new()));
        assert_eq!(of("get=0.5"), MixError::Share("0.5".into()));
        assert_eq!(of("get=-1"), MixError::Share("-1".into()));
        assert_eq!(of("get=1,get=1"), MixError::Twice("get"));
        assert_eq!(of("get=0"), MixError::Empty);
    }

    #[test]
    fn operations_are_picked_in_proportion_to_their_shares() {
        const STEP: u64 = u64::MAX / 1000;
        let mix: Mix = "get=3,set=1".parse().unwrap();
        let gets = (0..1000).filter(|i| mix.pick(i * STEP + STEP / 2) == Op::Get).count();
        assert_eq!(gets, 750);
        assert_eq!((mix.pick(0), mix.pick(u64::MAX)), (Op::Get, Op::Set));
    }
}
