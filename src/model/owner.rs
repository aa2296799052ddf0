//! What the ephemeralOwner field of a znode says (P-73).

/// Kind of a znode, as its stored ephemeralOwner encodes it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Owner {
    /// No owner: an ordinary znode.
    Nobody,
    /// An ephemeral znode of this session.
    Session(i64),
    Container,
    /// Lives until it has had no children for this many milliseconds.
    Ttl(i64),
}

/// ephemeralOwner of every container.
pub const CONTAINER: i64 = i64::MIN;
/// Longest TTL: 40 bits of milliseconds.
pub const TTL_MAX_MS: i64 = 0xFF_FFFF_FFFF;
const TTL_MARK: u64 = 0xFF << 56;

impl Owner {
    /// Reads a stored ephemeralOwner.
    ///
    /// * `extended`: `extendedTypesEnabled`. Without it Java takes a TTL mark for a session id.
    pub const fn decode(raw: i64, extended: bool) -> Self {
        if raw == 0 {
            Self::Nobody
        } else if raw == CONTAINER {
            Self::Container
        } else if extended && raw as u64 & TTL_MARK == TTL_MARK {
            Self::Ttl(raw & TTL_MAX_MS)
        } else {
            Self::Session(raw)
        }
    }

    /// The stored ephemeralOwner of a TTL znode.
    pub const fn encode_ttl(ttl_ms: i64) -> i64 {
        (TTL_MARK as i64) | ttl_ms
    }
}
