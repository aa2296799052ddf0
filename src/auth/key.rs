//! The `key` scheme, Java's example: a client authenticates with a multiple of the number in the znode `/key` (U-11).

/// Whether `shown` is a multiple of `key`, both as decimal text. If `key` is 0 every number is accepted.
///
/// Source: `KeyAuthenticationProvider.validate`.
pub fn fits(key: &[u8], shown: &[u8]) -> bool {
    let number = |text: &[u8]| str::from_utf8(text).ok().and_then(|text| text.parse::<i32>().ok());
    match (number(key), number(shown)) {
        (Some(0), Some(_)) => true,
        (Some(key), Some(shown)) => shown.wrapping_rem(key) == 0,
        _ => false,
    }
}
