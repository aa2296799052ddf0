//! Authentication requests: processed when they are read, without waiting for earlier requests (P-28, P-60, U-18).

use super::connection::identities_len;
use super::sasl::decode;
use super::{Connection, Need, reply};
use crate::auth::{self, Proof};
use crate::model::{Code, Identity, SessionId};
use jute::proto::{AuthPacket, ReplyHeader, RequestHeader};
use std::sync::Arc;

/// Limit on the identities of one connection. Java has none; but each is copied and compared with every new one.
const IDENTITIES_MAX: usize = 256;
/// Limit on the bytes of all of them: they go with every write that is forwarded, and into every list that names `auth`.
const IDENTITY_BYTES_MAX: usize = 64 * 1024;

impl Connection {
    /// Answers an auth or sasl request. A client that fails gets an error reply and its connection is closed; after an
    /// undecodable request the connection is closed without a reply.
    ///
    /// Source: `ZooKeeperServer.processPacket`.
    pub(super) fn identify(
        &mut self,
        session: SessionId,
        header: RequestHeader,
        body: &[u8],
    ) -> Result<(), Need> {
        self.counts.received(body.len() + 8);
        let _late = self.heard(0);
        let answer = reply::header(header.xid, 0, Code::OK);
        if header.kind == crate::model::op::SASL {
            self.sasl(session, answer, body)
        } else {
            self.auth(answer, body)
        }
    }

    /// Refuses a request that is not an authentication request, pings included, of a client that
    /// has not authenticated with a required scheme; the session stays until it expires.
    ///
    /// Source: `AuthenticationHelper.enforceAuthentication`.
    pub(super) fn bar(&mut self, header: RequestHeader, frame_len: usize) -> Need {
        self.counts.received(frame_len);
        let answer = reply::header(header.xid, 0, Code::SESSION_CLOSED_REQUIRE_AUTH);
        reply::put_uncounted(&mut self.unsent, answer, |_| {});
        let required = self.shared.limits.schemes.required.join(", ");
        Need::Close(format!(
            "the client has not authenticated by a required scheme ({required}); let it authenticate by one of these before \
             its first request, or change enforce.auth.schemes or sessionRequireClientSASLAuth"
        ))
    }

    fn auth(&mut self, answer: ReplyHeader, body: &[u8]) -> Result<(), Need> {
        let packet: AuthPacket<'_> = decode(body)?;
        let scheme = packet.scheme.as_deref().unwrap_or_default();
        let key = || {
            let tree = self.shared.state.tree.read();
            let id = tree.find("/key")?;
            tree.znode(id).data().bytes().map(<[u8]>::to_vec)
        };
        // A client has its certificate's identities from the start, and may ask for them again.
        let has_certificate =
            scheme == "x509" && self.identities.iter().any(|id| &*id.scheme == "x509");
        let proof = match has_certificate {
            true => Proof::Is(Vec::new()),
            false => auth::authenticate(&self.shared.limits.schemes, scheme, packet.auth, key),
        };
        let added = match proof {
            Proof::Is(ids) => self.add(ids),
            Proof::EnsembleMatches => {
                self.counts.ensemble.succeeded += 1;
                true
            }
            Proof::NoEnsembleNamed => {
                self.counts.ensemble.skipped += 1;
                true
            }
            Proof::Fails => false,
            Proof::OtherEnsemble => {
                self.counts.ensemble.failed += 1;
                return Err(Need::Close(
                    "the client names another ensemble; correct its address, or ensembleAuthName"
                        .into(),
                ));
            }
        };
        if !added {
            reply::put_uncounted(
                &mut self.unsent,
                ReplyHeader { err: Code::AUTH_FAILED.0, ..answer },
                |_| {},
            );
            return Err(Need::Close(format!(
                "authentication failed under scheme \"{}\"; check the client's name and password",
                scheme.escape_debug()
            )));
        }
        reply::put_uncounted(&mut self.unsent, answer, |_| {});
        Ok(())
    }

    /// Adds the identities that are new. `false`: the connection would have too many, or too many bytes of them.
    pub(super) fn add(&mut self, proved: Vec<Identity>) -> bool {
        let fresh: Vec<Identity> =
            proved.into_iter().filter(|id| !self.identities.contains(id)).collect();
        let bytes: usize = self.identities.iter().chain(&fresh).map(Identity::text_len).sum();
        if self.identities.len() + fresh.len() > IDENTITIES_MAX || bytes > IDENTITY_BYTES_MAX {
            return false;
        }
        if !fresh.is_empty() {
            self.identities =
                self.identities.iter().cloned().chain(fresh).collect::<Arc<[Identity]>>();
            self.identities_bytes = identities_len(&self.identities);
            self.conn.set_identities(self.identities.clone());
            self.barred = !self.shared.limits.schemes.is_authenticated(&self.identities);
        }
        true
    }
}
