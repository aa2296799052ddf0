//! A parsed certificate: the parts that trust and names need. Everything borrows from its bytes.

use super::der::{
    self, BIT_STRING, BOOLEAN, GENERALIZED_TIME, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING,
    SEQUENCE, UTC_TIME,
};

use super::dn::{self, DnError};

/// Object identifiers of extensions.
pub(super) mod oid {
    pub const KEY_USAGE: &[u8] = &[0x55, 0x1d, 15];
    pub const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 17];
    pub const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 19];
    pub const NAME_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 30];
    pub const CRL_DISTRIBUTION_POINTS: &[u8] = &[0x55, 0x1d, 31];
    pub const CERTIFICATE_POLICIES: &[u8] = &[0x55, 0x1d, 32];
    pub const POLICY_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 36];
    pub const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 37];
    pub const INHIBIT_ANY_POLICY: &[u8] = &[0x55, 0x1d, 54];
    pub const AUTHORITY_INFORMATION: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 1, 1];
    pub const NETSCAPE_TYPE: &[u8] = &[0x60, 0x86, 0x48, 1, 0x86, 0xf8, 0x42, 1, 1];
    pub const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
}

/// The subject of a certificate, given as DER.
///
/// # Errors
/// [`DnError`] if the bytes are no certificate, or the subject is encoded wrongly.
pub fn subject(certificate: &[u8]) -> Result<String, DnError> {
    dn::name(Certificate::parse(certificate).ok_or(DnError::NoCertificate)?.subject)
}

/// A certificate of version 1, 2 or 3.
#[derive(Clone, Debug)]
pub struct Certificate<'a> {
    /// All of its bytes.
    pub der: &'a [u8],
    /// 1, 2 or 3. Versions 1 and 2 have no extensions.
    pub version: u8,
    /// Content of the INTEGER.
    pub serial: &'a [u8],
    /// Names, with their headers.
    pub issuer: &'a [u8],
    pub subject: &'a [u8],
    /// Seconds since 1970.
    pub not_before: i64,
    pub not_after: i64,
    /// The public key with its algorithm and header, the content of the algorithm alone, and the key's bits.
    pub key_info: &'a [u8],
    pub key_algorithm: &'a [u8],
    pub key: &'a [u8],
    /// What is signed, the content of the signature's algorithm, and its bits.
    pub signed: &'a [u8],
    pub signature_algorithm: &'a [u8],
    pub signature: &'a [u8],
    extensions: Vec<Extension<'a>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Extension<'a> {
    pub oid: &'a [u8],
    pub is_critical: bool,
    pub value: &'a [u8],
}

impl<'a> Certificate<'a> {
    /// `None` if the bytes are no certificate in DER.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut fields = der::only(bytes, SEQUENCE)?;
        let signed = der::take(&mut fields).filter(|value| value.tag == SEQUENCE)?;
        let signature_algorithm = der::take_tagged(&mut fields, SEQUENCE)?;
        let signature = bits(der::take_tagged(&mut fields, BIT_STRING)?)?;
        let mut tbs = signed.content;
        let version = match der::take_optional(&mut tbs, 0xa0)? {
            None => 1,
            Some(explicit) => match der::only(explicit, INTEGER)? {
                [version @ 0..=2] => version + 1,
                _ => return None,
            },
        };
        let serial = der::take_tagged(&mut tbs, INTEGER)?;
        let inner_algorithm = der::take_tagged(&mut tbs, SEQUENCE)?;
        let issuer = der::take(&mut tbs).filter(|value| value.tag == SEQUENCE)?.whole;
        let mut validity = der::take_tagged(&mut tbs, SEQUENCE)?;
        let (not_before, not_after) = (time(&mut validity)?, time(&mut validity)?);
        let subject = der::take(&mut tbs).filter(|value| value.tag == SEQUENCE)?.whole;
        let key_info = der::take(&mut tbs).filter(|value| value.tag == SEQUENCE)?;
        let mut key_fields = key_info.content;
        let key_algorithm = der::take_tagged(&mut key_fields, SEQUENCE)?;
        let key = bits(der::take_tagged(&mut key_fields, BIT_STRING)?)?;
        der::take_optional(&mut tbs, 0x81)?;
        der::take_optional(&mut tbs, 0x82)?;
        let extensions = match der::take_optional(&mut tbs, 0xa3)? {
            None => Vec::new(),
            Some(_) if version != 3 => return None,
            Some(explicit) => extensions(der::only(explicit, SEQUENCE)?)?,
        };
        let is_whole = fields.is_empty() && tbs.is_empty() && validity.is_empty();
        let is_consistent = key_fields.is_empty() && inner_algorithm == signature_algorithm;
        (is_whole && is_consistent).then_some(Self {
            der: bytes,
            version,
            serial,
            issuer,
            subject,
            not_before,
            not_after,
            key_info: key_info.whole,
            key_algorithm,
            key,
            signed: signed.whole,
            signature_algorithm,
            signature,
            extensions,
        })
    }

    /// The subject for a log line; a name that can't be printed has no text.
    pub fn subject_text(&self) -> String {
        dn::name(self.subject).unwrap_or_default()
    }

    pub(super) fn extension(&self, oid: &[u8]) -> Option<&'a [u8]> {
        self.extensions.iter().find(|extension| extension.oid == oid).map(|found| found.value)
    }

    pub(super) fn extensions(&self) -> &[Extension<'a>] {
        &self.extensions
    }

    /// basicConstraints: whether it is a CA, and `pathLenConstraint` (how many intermediate
    /// certificates may stand between it and the leaf). `None` if the extension is encoded wrongly.
    pub fn issues(&self) -> Option<(bool, Option<u32>)> {
        let Some(value) = self.extension(oid::BASIC_CONSTRAINTS) else {
            return Some((false, None));
        };
        let mut fields = der::only(value, SEQUENCE)?;
        let is_ca = der::take_optional(&mut fields, BOOLEAN)?.is_some_and(|value| value != [0]);
        let len_max = match der::take_optional(&mut fields, INTEGER)? {
            None => None,
            Some([]) => return None,
            Some([first, ..]) if first & 0x80 != 0 => return None,
            Some(digits) => {
                let add =
                    |sum: u32, &digit: &u8| sum.saturating_mul(256).saturating_add(digit.into());
                Some(digits.iter().fold(0, add))
            }
        };
        fields.is_empty().then_some((is_ca, len_max))
    }

    /// Whether keyUsage has this bit, or there is no keyUsage. `None` if the extension is encoded wrongly.
    pub(super) fn has_usage(&self, bit: usize) -> Option<bool> {
        self.has_bit(oid::KEY_USAGE, bit)
    }

    pub(super) fn has_bit(&self, extension: &[u8], bit: usize) -> Option<bool> {
        let Some(value) = self.extension(extension) else { return Some(true) };
        let (unused, bytes) = der::only(value, BIT_STRING)?.split_first()?;
        let byte = bytes.get(bit / 8).copied().unwrap_or(0);
        (*unused < 8).then_some(byte & 0x80 >> (bit % 8) != 0)
    }

    /// The purposes of extendedKeyUsage as object identifiers; `Some(None)` without that extension, `None` if it is encoded wrongly.
    pub(super) fn purposes(&self) -> Option<Option<Vec<&'a [u8]>>> {
        let Some(value) = self.extension(oid::EXTENDED_KEY_USAGE) else { return Some(None) };
        let (mut list, mut purposes) = (der::only(value, SEQUENCE)?, Vec::new());
        while !list.is_empty() {
            purposes.push(der::take_tagged(&mut list, OBJECT_IDENTIFIER)?);
        }
        Some(Some(purposes))
    }

    /// The bits of an RSA key's modulus; `None` for keys of other kinds.
    pub(super) fn rsa_bits(&self) -> Option<usize> {
        let mut algorithm = self.key_algorithm;
        if der::take_tagged(&mut algorithm, OBJECT_IDENTIFIER)? != oid::RSA {
            return None;
        }
        let mut fields = der::only(self.key, SEQUENCE)?;
        let modulus = der::take_tagged(&mut fields, INTEGER)?;
        let zeros: u32 = modulus.iter().take_while(|byte| **byte == 0).count() as u32 * 8
            + modulus.iter().find(|byte| **byte != 0).map_or(0, |byte| byte.leading_zeros());
        Some(modulus.len() * 8 - zeros as usize)
    }

    /// Where its CRLs are, as URLs.
    pub fn crl_urls(&self) -> Vec<&'a str> {
        let mut urls = Vec::new();
        let Some(mut points) = self
            .extension(oid::CRL_DISTRIBUTION_POINTS)
            .and_then(|value| der::only(value, SEQUENCE))
        else {
            return urls;
        };
        while let Some(mut point) = der::take_tagged(&mut points, SEQUENCE) {
            // DistributionPointName [0], in it fullName [0]: general names, a URL is [6].
            let names = der::take_tagged(&mut point, 0xa0).and_then(|name| der::only(name, 0xa0));
            let mut names = names.unwrap_or_default();
            while let Some(name) = der::take(&mut names) {
                urls.extend(str::from_utf8(name.content).ok().filter(|_| name.tag == 0x86));
            }
        }
        urls
    }

    /// Where its OCSP responders are, as URLs.
    pub fn ocsp_urls(&self) -> Vec<&'a str> {
        const OCSP: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1];
        let mut urls = Vec::new();
        let Some(mut entries) =
            self.extension(oid::AUTHORITY_INFORMATION).and_then(|value| der::only(value, SEQUENCE))
        else {
            return urls;
        };
        while let Some(mut entry) = der::take_tagged(&mut entries, SEQUENCE) {
            let method = der::take_tagged(&mut entry, OBJECT_IDENTIFIER);
            let place = der::take_tagged(&mut entry, 0x86).filter(|_| method == Some(OCSP));
            urls.extend(place.and_then(|url| str::from_utf8(url).ok()));
        }
        urls
    }
}

/// The bytes of a BIT STRING without unused bits.
pub(super) fn bits(content: &[u8]) -> Option<&[u8]> {
    content.split_first().filter(|(unused, _)| **unused == 0).map(|(_, bits)| bits)
}

/// A second extension with the same identifier is an error.
pub(super) fn extensions(mut list: &[u8]) -> Option<Vec<Extension<'_>>> {
    let mut found: Vec<Extension<'_>> = Vec::new();
    while !list.is_empty() {
        let mut fields = der::take_tagged(&mut list, SEQUENCE)?;
        let oid = der::take_tagged(&mut fields, OBJECT_IDENTIFIER)?;
        let is_critical =
            der::take_optional(&mut fields, BOOLEAN)?.is_some_and(|value| value != [0]);
        let value = der::take_tagged(&mut fields, OCTET_STRING)?;
        if !fields.is_empty() || found.iter().any(|earlier| earlier.oid == oid) {
            return None;
        }
        found.push(Extension { oid, is_critical, value });
    }
    Some(found)
}

/// Seconds since 1970 of a UTCTime or GeneralizedTime, to the second and in UTC as DER wants them.
pub(super) fn time(fields: &mut &[u8]) -> Option<i64> {
    let value = der::take(fields)?;
    let (digits, century) = match (value.tag, value.content) {
        (UTC_TIME, [digits @ .., b'Z']) if digits.len() == 12 => (digits, None),
        (GENERALIZED_TIME, [century @ .., b'Z']) if century.len() == 14 => {
            let (century, digits) = century.split_at(2);
            (digits, Some(century))
        }
        _ => return None,
    };
    let two = |pair: &[u8]| match pair {
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => {
            Some(i64::from((tens - b'0') * 10 + ones - b'0'))
        }
        _ => None,
    };
    let mut numbers = [0; 6];
    for (number, pair) in numbers.iter_mut().zip(digits.chunks(2)) {
        *number = two(pair)?;
    }
    let [year, month, day, hour, minute, second] = numbers;
    let century = match century {
        Some(century) => two(century)?,
        None if year >= 50 => 19,
        None => 20,
    };
    let fits = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    fits.then(|| {
        days(century * 100 + year, month, day) * 86400 + hour * 3600 + minute * 60 + second
    })
}

/// Days from 1970-01-01 to a day of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // The year begins in March, so that the leap day is its last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// A time as `2026-11-26T12:00:00Z`.
pub fn time_text(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(86400) + 719_468, seconds.rem_euclid(86400));
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    let year = era * 400 + year + next;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}
