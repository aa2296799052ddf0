//! Bytes made by Java's own record classes, and files made by a Java server, against this crate.
//!
//! The files come from `compat-tests/golden/make-golden`, which also describes their lines.

use codecs::{CODECS, Decoded, Schema, Type, Value, codec, unhex, unquote};
use jute::{Buffer, Decode, Encode, Reader, Ustring, Vector, data, persistence, txn};

const STRINGS: &str = include_str!("../../compat-tests/golden/strings.txt");
const LOG: &[u8] = include_bytes!("../../compat-tests/golden/java-data/version-2/log.1");
const SNAPSHOT: &[u8] = include_bytes!("../../compat-tests/golden/java-data/version-2/snapshot.c");

/// `field=value...` as the record it stands for.
fn parse_fields(schema: &Schema, record: &str, words: &[&str]) -> Value {
    let fields = schema.fields(record);
    assert_eq!(words.len(), fields.len(), "fields of {record}");
    let values = words.iter().zip(fields).map(|(word, field)| {
        let mut text = word.split_once('=').expect("a field has a value").1;
        let value = schema.parse(field, &mut text);
        assert_eq!(text, "", "rest of {word}");
        value
    });
    Value::Record(values.collect())
}

// rows: P-04 P-07
#[test]
fn every_record_of_java_is_here_and_no_other() {
    fn check(of: &Type, schema: &Schema) {
        match of {
            Type::Vector(item) => check(item, schema),
            // A map would show up here, as a record that is not declared.
            Type::Record(name) => assert!(schema.0.contains_key(name), "{name} is no record"),
            _ => {}
        }
    }
    let schema = Schema::load();
    for (name, fields) in &schema.0 {
        codec(name);
        fields.iter().for_each(|field| check(field, &schema));
    }
    assert_eq!(schema.0.len(), CODECS.len());
}

// rows: P-04 P-05 P-08
#[test]
fn every_golden_record_reads_and_writes_as_in_java() {
    let schema = Schema::load();
    let mut lines = 0;
    for line in codecs::RECORDS.lines().filter(|line| !line.starts_with("schema ")) {
        let words: Vec<_> = line.split(' ').collect();
        let [name, variant, ..] = words[..] else { panic!("short line: {line}") };
        let end = 2 + schema.fields(name).len();
        let (codec, bytes) = (codec(name), unhex(words[end]));
        let written = parse_fields(&schema, name, &words[2..end]);
        if variant != "lone" {
            // A Rust string cannot hold half a surrogate pair, so those lines can only be read.
            assert_eq!((codec.encode)(&written), bytes, "written: {line}");
        }
        let Decoded { value, encoded, used } = (codec.decode)(&bytes).expect(line);
        assert_eq!(used, bytes.len(), "read to the end: {line}");
        if let Some(again) = words.get(end + 1) {
            assert_eq!(*again, "reread");
            let fields = &words[end + 2..words.len() - 1];
            assert_eq!(value, parse_fields(&schema, name, fields), "reread: {line}");
            // Written from the value: a decoded vector would go out as the bytes it came in as.
            assert_eq!((codec.encode)(&value), unhex(words[words.len() - 1]), "rewritten: {line}");
        } else {
            assert_eq!(value, written, "read: {line}");
            assert_eq!(encoded, bytes, "rewritten: {line}");
        }
        lines += 1;
    }
    assert!(400 < lines, "only {lines} golden records");
}

// rows: P-08
#[test]
fn malformed_strings_are_read_as_in_java() {
    for line in STRINGS.lines() {
        let words: Vec<_> = line.split(' ').collect();
        let [bytes, mut text, again] = words[..] else { panic!("not three words: {line}") };
        let bytes = unhex(bytes);
        let read = Ustring::decode(&mut Reader::new(&bytes)).expect(line).expect(line);
        assert_eq!(read, unquote(&mut text), "{line}");
        let mut encoded = Vec::new();
        Some(read).encode(&mut encoded);
        assert_eq!(encoded, unhex(again), "rewritten: {line}");
    }
}

/// Reads one record and appends it to `to` again.
fn copy<'a, T: Decode<'a> + Encode>(from: &mut Reader<'a>, to: &mut Vec<u8>) -> T {
    let record: T = from.read().expect("a whole record");
    record.encode(to);
    record
}

/// The body of a transaction of the given type, by the table that Java logs and proposes them with.
fn copy_body(kind: i32, from: &mut Reader<'_>, to: &mut Vec<u8>) {
    match kind {
        1 | 15 => drop(copy::<txn::CreateTxn>(from, to)),
        2 | 20 => drop(copy::<txn::DeleteTxn>(from, to)),
        5 => drop(copy::<txn::SetDataTxn>(from, to)),
        7 => drop(copy::<txn::SetAclTxn>(from, to)),
        13 => drop(copy::<txn::CheckVersionTxn>(from, to)),
        14 => {
            for part in copy::<txn::MultiTxn>(from, to).txns.iter() {
                let (bytes, mut again) = (part.data.expect("a part has a body"), Vec::new());
                copy_body(part.kind, &mut Reader::new(bytes), &mut again);
                assert_eq!(again, bytes, "part of type {} of a multi", part.kind);
            }
        }
        19 => drop(copy::<txn::CreateContainerTxn>(from, to)),
        21 => drop(copy::<txn::CreateTtlTxn>(from, to)),
        -1 => _ = copy::<txn::ErrorTxn>(from, to),
        -10 => _ = copy::<txn::CreateSessionTxn>(from, to),
        -11 => drop(copy::<txn::CloseSessionTxn>(from, to)),
        other => panic!("a transaction of type {other}"),
    }
}

#[test]
fn javas_log_is_rewritten_to_the_same_bytes() {
    let (mut from, mut to) = (Reader::new(LOG), Vec::new());
    assert_eq!(copy::<persistence::FileHeader>(&mut from, &mut to).magic.to_be_bytes(), *b"ZKLG");
    let mut kinds = std::collections::BTreeSet::new();
    while !from.rest().is_empty() {
        let _checksum: i64 = copy(&mut from, &mut to);
        let payload = copy::<Buffer>(&mut from, &mut to).expect("a record has a body");
        to.extend(from.take(1).expect("a record ends in its mark"));
        let (mut body, mut again) = (Reader::new(payload), Vec::new());
        let header: txn::TxnHeader = copy(&mut body, &mut again);
        copy_body(header.kind, &mut body, &mut again);
        // An error leaves the tree as it is, and is logged without a digest.
        if !body.rest().is_empty() {
            copy::<txn::TxnDigest>(&mut body, &mut again);
        }
        assert_eq!(body.rest(), b"", "after zxid {:#x}", header.zxid);
        assert_eq!(again, payload, "zxid {:#x}", header.zxid);
        kinds.insert(header.kind);
    }
    assert_eq!(to, LOG);
    // Every type a standalone server logs; 13 only inside a multi, 16 (reconfig) only in an ensemble.
    assert_eq!(Vec::from_iter(kinds), [-11, -10, -1, 1, 2, 5, 7, 14, 15, 19, 20, 21]);
}

#[test]
fn javas_snapshot_is_rewritten_to_the_same_bytes() {
    let (mut from, mut to) = (Reader::new(SNAPSHOT), Vec::new());
    assert_eq!(copy::<persistence::FileHeader>(&mut from, &mut to).magic.to_be_bytes(), *b"ZKSN");
    for _session in 0..copy::<i32>(&mut from, &mut to) {
        let _id: i64 = copy(&mut from, &mut to);
        let _timeout_ms: i32 = copy(&mut from, &mut to);
    }
    for _acl in 0..copy::<i32>(&mut from, &mut to) {
        let _number: i64 = copy(&mut from, &mut to);
        copy::<Vector<data::Acl>>(&mut from, &mut to);
    }
    let mut nodes = 0;
    while copy::<Ustring>(&mut from, &mut to).expect("a path") != "/" {
        let _data: Buffer = copy(&mut from, &mut to);
        let _acl: i64 = copy(&mut from, &mut to);
        let _stat: data::StatPersisted = copy(&mut from, &mut to);
        nodes += 1;
    }
    assert_eq!(nodes, 11);
    // What follows the nodes (digest, last zxid, checksum) is no record.
    to.extend(from.rest());
    assert_eq!(to, SNAPSHOT);
}
