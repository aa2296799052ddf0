//! Helps tests read the case files under `compat-tests/golden`.

/// The bytes that a case stands for: `%xx` is one byte, all else is itself.
pub fn bytes_of(case: &str) -> Vec<u8> {
    let mut parts = case.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (hex, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(hex, 16).expect("two hexadecimal digits"));
        bytes.extend_from_slice(rest.as_bytes());
    }
    bytes
}
