//! Any bytes as any record: reading never panics, and what was read survives being written and read again.
//! The first byte chooses the record.

pub fn target(input: &[u8]) {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let codec = &codecs::CODECS[usize::from(choice) % codecs::CODECS.len()];
    let Ok(read) = (codec.decode)(bytes) else { return };
    assert!(read.used <= bytes.len(), "{} took more than there was", codec.name);
    let written = (codec.encode)(&read.value);
    let again = (codec.decode)(&written).expect("what we write can be read");
    // As in Java, characters beyond U+FFFF do not survive it (P-08).
    assert_eq!(again.value, codecs::reread(&read.value), "{} written and read again", codec.name);
    assert_eq!(again.used, written.len(), "{} read to its end", codec.name);
}
