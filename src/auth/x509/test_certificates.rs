//! Certificates of tests, made byte by byte, so that they can have every fault. The signature is the caller's: tests of this
//! room take the issuer's key for one, tests with TLS sign.

use super::certificate::{oid, time_text};

/// 2026-11-26T12:00:00Z, the time of these tests.
pub const NOW: i64 = 1_795_694_400;

/// Contents of algorithm identifiers: an EC key on secp256r1, ECDSA with SHA-256 and with SHA-1, an RSA key.
pub const EC_KEY: &[u8] =
    &[6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
pub const ECDSA_SHA256: &[u8] = &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
pub const ECDSA_SHA1: &[u8] = &[6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1];
pub const RSA_KEY: &[u8] = &[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];

/// A certificate to be.
#[derive(Clone)]
pub struct Draft {
    pub version: u8,
    pub subject: String,
    pub issuer: String,
    pub from: i64,
    pub until: i64,
    pub key_algorithm: &'static [u8],
    pub key: Vec<u8>,
    pub signature_algorithm: &'static [u8],
    /// Object identifier, whether it is critical, value.
    pub extensions: Vec<(Vec<u8>, bool, Vec<u8>)>,
}

impl Draft {
    /// A certificate of version 3 without extensions, whose key is its subject's name.
    pub fn new(subject: &str, issuer: &str) -> Self {
        Self {
            version: 3,
            subject: subject.to_owned(),
            issuer: issuer.to_owned(),
            from: NOW - 1000,
            until: NOW + 1000,
            key_algorithm: EC_KEY,
            key: subject.as_bytes().to_vec(),
            signature_algorithm: ECDSA_SHA256,
            extensions: Vec::new(),
        }
    }

    /// The same for a CA.
    pub fn authority(subject: &str, issuer: &str) -> Self {
        Self::new(subject, issuer).with(oid::BASIC_CONSTRAINTS, true, &authority(None))
    }

    pub fn with(mut self, oid: &[u8], is_critical: bool, value: &[u8]) -> Self {
        self.extensions.push((oid.to_vec(), is_critical, value.to_vec()));
        self
    }

    /// Signed with the key of the issuer as tests of this room have it.
    pub fn der(&self) -> Vec<u8> {
        self.signed(|_| self.issuer.as_bytes().to_vec())
    }

    pub fn signed(&self, sign: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
        let mut fields = Vec::new();
        if self.version > 1 {
            fields.push(tlv(0xa0, &[&tlv(2, &[&[self.version - 1]])]));
        }
        let time = |seconds| {
            let digits: Vec<u8> = time_text(seconds)
                .bytes()
                .filter(|byte| byte.is_ascii_digit() || *byte == b'Z')
                .collect();
            tlv(0x18, &[&digits])
        };
        fields.push(tlv(2, &[&[7]]));
        fields.push(tlv(0x30, &[self.signature_algorithm]));
        fields.push(name(&self.issuer));
        fields.push(tlv(0x30, &[&time(self.from), &time(self.until)]));
        fields.push(name(&self.subject));
        fields.push(tlv(0x30, &[&tlv(0x30, &[self.key_algorithm]), &tlv(3, &[&[0], &self.key])]));
        if !self.extensions.is_empty() {
            let extension = |(oid, is_critical, value): &(Vec<u8>, bool, Vec<u8>)| {
                let critical = if *is_critical { tlv(1, &[&[0xff]]) } else { Vec::new() };
                tlv(0x30, &[&tlv(6, &[oid]), &critical, &tlv(4, &[value])])
            };
            let all: Vec<u8> = self.extensions.iter().flat_map(extension).collect();
            fields.push(tlv(0xa3, &[&tlv(0x30, &[&all])]));
        }
        let tbs = tlv(0x30, &[&fields.concat()]);
        let signature = tlv(3, &[&[0], &sign(&tbs)]);
        tlv(0x30, &[&tbs, &tlv(0x30, &[self.signature_algorithm]), &signature])
    }
}

/// A value in DER.
pub use super::der::encode as tlv;

/// A name with a common name alone.
pub fn name(text: &str) -> Vec<u8> {
    let pair = tlv(0x30, &[&tlv(6, &[&[0x55, 4, 3]]), &tlv(0x0c, &[text.as_bytes()])]);
    tlv(0x30, &[&tlv(0x31, &[&pair])])
}

/// The value of basicConstraints of a CA.
pub fn authority(path_len: Option<u8>) -> Vec<u8> {
    let len = path_len.map(|len| tlv(2, &[&[len]])).unwrap_or_default();
    tlv(0x30, &[&tlv(1, &[&[0xff]]), &len])
}

/// The value of keyUsage, or nsCertType, with these bits.
pub fn usage(bits: &[usize]) -> Vec<u8> {
    tlv(3, &[&[0], &[bits.iter().fold(0, |byte, bit| byte | 0x80 >> bit)]])
}

/// The value of extendedKeyUsage.
pub fn purposes(oids: &[&[u8]]) -> Vec<u8> {
    tlv(0x30, &[&oids.iter().flat_map(|oid| tlv(6, &[oid])).collect::<Vec<u8>>()])
}

/// The value of subjectAltName: tags and contents.
pub fn alternative_names(names: &[(u8, &[u8])]) -> Vec<u8> {
    tlv(0x30, &[&names.iter().flat_map(|(tag, name)| tlv(*tag, &[name])).collect::<Vec<u8>>()])
}
