//! Every record, filled at random: written as the format says, read back whole, and no bytes make reading panic.

use codecs::{CODECS, Codec, Schema, Type, Value, reference, reread};
use jute::{Buffer, Decode, DecodeError, Reader, Ustring, Vector, data, put_utf8, read_utf8};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

fn text() -> impl Strategy<Value = String> {
    // Characters of one to four bytes, each as likely as the others, and the borders between them.
    let c = prop_oneof![
        any::<char>(),
        prop::char::range('\0', '\u{80}'),
        prop::char::range('\u{7f}', '\u{800}'),
        prop::char::range('\u{7ff}', '\u{ffff}'),
        prop::char::range('\u{10000}', '\u{10ffff}'),
    ];
    prop::collection::vec(c, 0..8).prop_map(String::from_iter)
}

fn value(of: &Type, schema: &Schema) -> BoxedStrategy<Value> {
    let or_null =
        |some: BoxedStrategy<Value>| prop_oneof![1 => Just(Value::Null), 4 => some].boxed();
    match of {
        Type::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        Type::Int => any::<i32>().prop_map(Value::Int).boxed(),
        Type::Long => any::<i64>().prop_map(Value::Long).boxed(),
        Type::Text => or_null(text().prop_map(Value::Text).boxed()),
        Type::Bytes => {
            let bytes = prop::collection::vec(any::<u8>(), 0..20);
            or_null(bytes.prop_map(Value::Bytes).boxed())
        }
        Type::Vector(item) => {
            let items = prop::collection::vec(value(item, schema), 0..4);
            or_null(items.prop_map(Value::List).boxed())
        }
        Type::Record(name) => {
            let fields: Vec<_> = schema.fields(name).iter().map(|f| value(f, schema)).collect();
            fields.prop_map(Value::Record).boxed()
        }
    }
}

/// Runs `check` on values of every record, made to Java's declaration of it.
fn for_every_record(check: impl Fn(&Codec, &Value, Vec<u8>) -> Result<(), TestCaseError>) {
    let schema = Schema::load();
    for codec in CODECS {
        let name = schema.0.keys().find(|name| name.eq_ignore_ascii_case(codec.name));
        let of = Type::Record(name.expect("Java has this record").clone());
        let mut runner =
            TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(64) });
        let result = runner.run(&value(&of, &schema), |value| {
            let mut bytes = Vec::new();
            reference(&value, &of, &schema, &mut bytes);
            check(codec, &value, bytes)
        });
        result.unwrap_or_else(|error| panic!("{}: {error}", codec.name));
    }
}

// rows: P-04 P-05 P-08
#[test]
fn every_record_survives_writing_and_reading() {
    for_every_record(|codec, value, bytes| {
        prop_assert_eq!(&(codec.encode)(value), &bytes);
        let decoded = (codec.decode)(&bytes).expect("own bytes are a record");
        prop_assert_eq!(decoded.used, bytes.len());
        prop_assert_eq!(&decoded.value, &reread(value));
        // What came in goes out again byte for byte, unless a string had to be repaired on the way.
        if reread(value) == *value {
            prop_assert_eq!(decoded.encoded, bytes);
        }
        Ok(())
    });
}

#[test]
fn no_prefix_of_a_record_is_a_record() {
    for_every_record(|codec, _, bytes| {
        for len in 0..bytes.len() {
            let short = matches!((codec.decode)(&bytes[..len]), Err(DecodeError::Short { .. }));
            prop_assert!(short, "{len} of {} bytes", bytes.len());
        }
        Ok(())
    });
}

#[test]
fn bytes_after_a_record_are_not_read() {
    for_every_record(|codec, value, mut bytes| {
        let len = bytes.len();
        bytes.extend([0xFF; 9]);
        let decoded = (codec.decode)(&bytes).expect("a record with more after it");
        prop_assert_eq!(decoded.used, len);
        prop_assert_eq!(decoded.value, reread(value));
        Ok(())
    });
}

/// Every value that is decoded must be a record: it can be encoded, and decoded again to the same value.
fn decode_is_sound(codec: &Codec, bytes: &[u8]) {
    if let Ok(decoded) = (codec.decode)(bytes) {
        let again = (codec.decode)(&decoded.encoded).expect("a decoded record can be encoded");
        assert_eq!(again.value, decoded.value, "{}", codec.name);
    }
}

// rows: P-05
#[test]
fn false_lengths_never_panic() {
    let lies = [-1, -2, i32::MIN, 0, 1, 2, 255, 0xFFFFF, 0x100000, i32::MAX - 1, i32::MAX];
    for_every_record(|codec, _, bytes| {
        for at in 0..bytes.len().saturating_sub(3) {
            // Every offset is tried, so every length field is hit, and so are offsets that are none.
            for lie in lies {
                let mut bytes = bytes.clone();
                bytes[at..at + 4].copy_from_slice(&lie.to_be_bytes());
                decode_is_sound(codec, &bytes);
            }
        }
        Ok(())
    });
}

// rows: P-04 P-05
#[test]
fn each_kind_of_length_is_checked_as_in_java() {
    let after = |len: i32, rest: &[u8]| [&len.to_be_bytes()[..], rest].concat();
    for len in [-2, -3, i32::MIN] {
        let bytes = after(len, b"abcd");
        let refused = Err(DecodeError::Length { at: 0, len });
        assert_eq!(Buffer::decode(&mut Reader::new(&bytes)), refused);
        assert_eq!(Ustring::decode(&mut Reader::new(&bytes)).map(|_| None), refused);
        // A vector with a negative count has no items, and what follows belongs to the next field.
        let mut reader = Reader::new(&bytes);
        let vector: Vector<i32> = reader.read().expect("an empty vector");
        assert!(!vector.is_null() && vector.is_empty());
        assert_eq!(reader.rest(), b"abcd");
    }
    for len in [5, 1 << 20, i32::MAX] {
        let bytes = after(len, b"abcd");
        let short = DecodeError::Short { at: 4, needed: len as usize, left: 4 };
        assert_eq!(Buffer::decode(&mut Reader::new(&bytes)), Err(short));
        // A count is no promise of memory: items are read until the bytes run out, which is then the error.
        let counted = Vector::<data::Acl>::decode(&mut Reader::new(&bytes));
        assert_eq!(counted.map(|_| ()), Err(DecodeError::Short { at: 8, needed: 4, left: 0 }));
    }
    let null = after(-1, b"");
    assert_eq!(Buffer::decode(&mut Reader::new(&null)), Ok(None));
    assert_eq!(Ustring::decode(&mut Reader::new(&null)), Ok(None));
    assert!(Vector::<i32>::decode(&mut Reader::new(&null)).expect("null").is_null());
}

#[test]
fn every_byte_but_zero_is_true() {
    for byte in 0..=u8::MAX {
        assert_eq!(Reader::new(&[byte]).read::<bool>(), Ok(byte != 0));
    }
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::with_cases(1000) })]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(
        prop_oneof![Just(0_u8), Just(0xFF), 0_u8..8, any::<u8>()], 0..120,
    )) {
        for codec in CODECS {
            decode_is_sound(codec, &bytes);
        }
    }

    /// Characters of each length, cut, halves of surrogate pairs and stray bytes, also across blocks.
    #[test]
    fn appended_text_is_the_decoded_text(
        before in 0_usize..600,
        parts in prop::collection::vec(prop_oneof![
            any::<char>().prop_map(|c| c.to_string().into_bytes()),
            (any::<char>(), 1_usize..4).prop_map(|(c, len)| {
                let mut bytes = c.to_string().into_bytes();
                bytes.truncate(len);
                bytes
            }),
            (0xA0_u8..0xC0, any::<u8>()).prop_map(|(two, three)| vec![0xED, two, three]),
            prop::collection::vec(any::<u8>(), 0..4),
        ], 0..200),
    ) {
        let mut bytes = vec![0xFF; before];
        bytes.extend(parts.concat());
        let mut text = vec![b'x'];
        put_utf8(&mut text, &bytes);
        let decoded = read_utf8(&bytes);
        prop_assert_eq!(&text[1..], decoded.as_bytes());
    }
}
