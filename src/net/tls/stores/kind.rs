//! What kind of store bytes are.

use super::error::Fault;
use super::jks;
use crate::config::tls::StoreKind;

/// The kinds that are read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    Jks,
    Pkcs12,
    Pem,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Jks => "JKS",
            Kind::Pkcs12 => "PKCS12",
            Kind::Pem => "PEM",
        }
    }

    /// Whether settings that name `kind` mean this one.
    pub(super) fn is(self, kind: StoreKind) -> bool {
        match kind {
            StoreKind::Jks => self == Kind::Jks,
            StoreKind::Pkcs12 => self == Kind::Pkcs12,
            StoreKind::Pem => self == Kind::Pem,
            StoreKind::Bcfks => false,
        }
    }
}

/// Kind of a store by its first bytes.
pub(super) fn kind_of(data: &[u8]) -> Result<Kind, Fault> {
    if data.is_empty() {
        return Err(Fault::Empty);
    }
    if data.starts_with(&jks::MAGIC) {
        return Ok(Kind::Jks);
    }
    if data.starts_with(&jks::JCEKS_MAGIC) {
        return Err(Fault::Convert {
            what: "a JCEKS store, which only Java reads",
            command: "keytool -importkeystore -srckeystore FILE -srcstoretype JCEKS -destkeystore NEW.p12 -deststoretype PKCS12",
        });
    }
    if contains(data, b"-----BEGIN ") {
        return Ok(Kind::Pem);
    }
    match der_content(data) {
        // The version of a PFX.
        Some([0x02, 0x01, 0x03, ..]) => Ok(Kind::Pkcs12),
        // A certificate begins with its signed part, which begins with version or serial number.
        Some(content) => match der_content(content) {
            Some([0xA0 | 0x02, ..]) => Err(Fault::Convert {
                what: "a single certificate in DER",
                command: "openssl x509 -inform DER -in FILE -out NEW.pem",
            }),
            // BCFKS begins with an algorithm, whether its entries are encrypted or not.
            Some([0x30 | 0x06, ..]) => Err(Fault::Convert {
                what: "a BCFKS store",
                command: "keytool -importkeystore -srckeystore FILE -srcstoretype BCFKS -destkeystore NEW.p12 -deststoretype PKCS12 \
                          -providerclass org.bouncycastle.jcajce.provider.BouncyCastleFipsProvider -providerpath bc-fips.jar",
            }),
            _ => Err(Fault::Unknown),
        },
        None => Err(Fault::Unknown),
    }
}

/// What comes after the head of a DER sequence.
fn der_content(data: &[u8]) -> Option<&[u8]> {
    match *data {
        [0x30, len, ..] if len < 0x80 => data.get(2..),
        [0x30, len, ..] => data.get(2 + usize::from(len & 0x7F)..),
        _ => None,
    }
}

pub(super) fn contains(data: &[u8], what: &[u8]) -> bool {
    data.windows(what.len()).any(|window| window == what)
}
