//! Private keys that a password protects: PKCS #8's `EncryptedPrivateKeyInfo`, with PBES2, or with 3DES of PKCS #12.

use super::error::Fault;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockModeDecrypt as _, KeyIvInit as _};
use pkcs8::der::asn1::OctetStringRef;
use pkcs8::der::{Decode as _, Reader as _, SliceReader};
use pkcs8::pkcs5::pbes2::Kdf;
use pkcs8::pkcs5::{EncryptionScheme, pbes2};
use pkcs8::{AlgorithmIdentifierRef, ObjectIdentifier};
use pkcs12::kdf::{Pkcs12KeyType, derive_key_utf8};
use sha1::Sha1;
use zeroize::Zeroizing;

/// `pbeWithSHAAnd3-KeyTripleDES-CBC`, which Java reads and crate pkcs8 does not.
const SHA1_3DES: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.12.1.3");
const PBES2: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.5.13");
/// More rounds than any tool makes, and about a second.
pub(super) const ROUNDS_MAX: u32 = 1_000_000;
/// Memory that scrypt may ask for; openssl asks for 16 MiB.
pub(super) const SCRYPT_LEN_MAX: u64 = 64 << 20;

/// Decrypts a private key to PKCS #8.
pub(super) fn decrypt(der: &[u8], password: &str) -> Result<Zeroizing<Vec<u8>>, Fault> {
    let encrypted = Encrypted::read(der).map_err(|_| DAMAGED)?;
    match encrypted.algorithm.oid {
        PBES2 => encrypted.pbes2(password),
        SHA1_3DES => encrypted.sha1_3des(password),
        _ => Err(Fault::Convert {
            what: "a key protected with an algorithm that is not PBES2 or PBE-SHA1-3DES",
            command: "openssl pkcs8 -in FILE -out KEY.pem -topk8 -v2 aes256, with -provider legacy -provider default before -v2 if it asks",
        }),
    }
}

const DAMAGED: Fault = Fault::Damaged("an encrypted key that is no PKCS #8");

/// An `EncryptedPrivateKeyInfo`.
struct Encrypted<'a> {
    algorithm: AlgorithmIdentifierRef<'a>,
    content: &'a [u8],
}

impl<'a> Encrypted<'a> {
    fn read(der: &'a [u8]) -> pkcs8::der::Result<Self> {
        let mut reader = SliceReader::new(der)?;
        reader.sequence(|inner| {
            let algorithm = AlgorithmIdentifierRef::decode(inner)?;
            let content: &OctetStringRef = inner.decode()?;
            Ok(Self { algorithm, content: content.as_bytes() })
        })
    }

    fn pbes2(&self, password: &str) -> Result<Zeroizing<Vec<u8>>, Fault> {
        let scheme = EncryptionScheme::try_from(self.algorithm).map_err(|_| DAMAGED)?;
        let parameters = scheme.pbes2().ok_or(DAMAGED)?;
        check_cost(parameters)?;
        let key = parameters.decrypt(password.as_bytes(), self.content);
        key.map(Zeroizing::new).map_err(|_| wrong_password(password))
    }

    fn sha1_3des(&self, password: &str) -> Result<Zeroizing<Vec<u8>>, Fault> {
        let parameters = self.algorithm.parameters.ok_or(DAMAGED)?;
        let (salt, rounds) = parameters
            .sequence(|inner| {
                let salt: &OctetStringRef = inner.decode()?;
                Ok::<_, pkcs8::der::Error>((salt.as_bytes(), u32::decode(inner)?))
            })
            .map_err(|_| DAMAGED)?;
        if rounds > ROUNDS_MAX {
            return Err(Fault::TooManyRounds);
        }
        let derive = |what, len| {
            let rounds = i32::try_from(rounds).unwrap_or(i32::MAX);
            let derived = derive_key_utf8::<Sha1>(password, salt, what, rounds, len);
            derived.map(Zeroizing::new).map_err(|_| Fault::PasswordText)
        };
        let key = derive(Pkcs12KeyType::EncryptionKey, 24)?;
        let iv = derive(Pkcs12KeyType::Iv, 8)?;
        let cipher = cbc::Decryptor::<des::TdesEde3>::new_from_slices(&key, &iv);
        let key = cipher.map_err(|_| DAMAGED)?.decrypt_padded_vec::<Pkcs7>(self.content);
        let key = key.map(Zeroizing::new).map_err(|_| wrong_password(password))?;
        // A wrong password has a right padding once in 256 times.
        pkcs8::PrivateKeyInfoRef::try_from(key.as_slice()).map_err(|_| wrong_password(password))?;
        Ok(key)
    }
}

fn wrong_password(password: &str) -> Fault {
    if password.is_empty() { Fault::NoPassword } else { Fault::WrongPassword }
}

fn check_cost(parameters: &pbes2::Parameters) -> Result<(), Fault> {
    let fits = match &parameters.kdf {
        Kdf::Pbkdf2(pbkdf2) => pbkdf2.iteration_count <= ROUNDS_MAX,
        Kdf::Scrypt(scrypt) => scrypt_fits(
            scrypt.cost_parameter,
            scrypt.block_size.into(),
            scrypt.parallelization.into(),
        ),
        _ => false,
    };
    fits.then_some(()).ok_or(Fault::TooManyRounds)
}

pub(super) fn scrypt_fits(cost: u64, block_size: u64, parallelization: u64) -> bool {
    let len = cost.checked_mul(block_size).and_then(|product| product.checked_mul(128));
    len.is_some_and(|len| len <= SCRYPT_LEN_MAX) && parallelization <= 16
}
