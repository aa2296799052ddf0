//! Records as plain values: those of the golden files, those that proptest generates, those that the crate under test decodes.

use jute::{Buffer, Decode, Encode, Reader, Ustring, Vector};
use std::borrow::Cow;
use std::collections::BTreeMap;

pub const RECORDS: &str = include_str!("../../../compat-tests/golden/records.txt");

/// A field of any record. `Record` is its fields in order: names differ between Java and us, places do not.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i32),
    Long(i64),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<Value>),
    Record(Vec<Value>),
}

/// The type of a field, as Java's classes declare it.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    Bool,
    Int,
    Long,
    Text,
    Bytes,
    Vector(Box<Type>),
    Record(String),
}

impl Type {
    fn parse(name: &str) -> Self {
        match name {
            "boolean" => Self::Bool,
            "int" => Self::Int,
            "long" => Self::Long,
            "ustring" => Self::Text,
            "buffer" => Self::Bytes,
            _ => match name.strip_prefix("vector<").and_then(|rest| rest.strip_suffix('>')) {
                Some(item) => Self::Vector(Box::new(Self::parse(item))),
                None => Self::Record(name.to_owned()),
            },
        }
    }
}

/// Every record of Java's five modules with the types of its fields, read from the golden file.
pub struct Schema(pub BTreeMap<String, Vec<Type>>);

impl Schema {
    pub fn load() -> Self {
        let lines = RECORDS.lines().filter_map(|line| line.strip_prefix("schema "));
        let records = lines.map(|line| {
            let mut words = line.split(' ');
            let name = words.next().expect("a schema line names its record");
            let types = words.map(|word| word.split_once(':').expect("a field has a type").1);
            (name.to_owned(), types.map(Type::parse).collect())
        });
        Self(records.collect())
    }

    pub fn fields(&self, record: &str) -> &[Type] {
        &self.0[record]
    }

    /// Takes one value of type `of` off the front of `text`, in the notation of records.txt.
    pub fn parse(&self, of: &Type, text: &mut &str) -> Value {
        if skip(text, "null") {
            return Value::Null;
        }
        match of {
            Type::Bool => Value::Bool(if skip(text, "true") {
                true
            } else {
                assert!(skip(text, "false"), "no boolean: {text}");
                false
            }),
            Type::Int => Value::Int(number(text).parse().expect("an int")),
            Type::Long => Value::Long(number(text).parse().expect("a long")),
            Type::Text => Value::Text(unquote(text)),
            Type::Bytes => {
                assert!(skip(text, "x:"), "no buffer: {text}");
                let end = text.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(text.len());
                Value::Bytes(unhex(take(text, end)))
            }
            Type::Vector(item) => {
                let mut items = Vec::new();
                assert!(skip(text, "["), "no vector: {text}");
                while !skip(text, "]") {
                    items.push(self.parse(item, text));
                    skip(text, ",");
                }
                Value::List(items)
            }
            Type::Record(name) => {
                assert!(skip(text, "{"), "no record: {text}");
                let fields = self.fields(name).iter().map(|field| {
                    let value = self.parse(field, text);
                    skip(text, ",");
                    value
                });
                let fields = fields.collect();
                assert!(skip(text, "}"), "record not closed: {text}");
                Value::Record(fields)
            }
        }
    }
}

fn skip(text: &mut &str, prefix: &str) -> bool {
    let rest = text.strip_prefix(prefix);
    *text = rest.unwrap_or(text);
    rest.is_some()
}

fn take<'t>(text: &mut &'t str, len: usize) -> &'t str {
    let (taken, rest) = text.split_at(len);
    *text = rest;
    taken
}

fn number<'t>(text: &mut &'t str) -> &'t str {
    take(text, text.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// Reads a quoted string. Lone surrogates, which Rust cannot hold, become U+FFFD.
pub fn unquote(text: &mut &str) -> String {
    assert!(skip(text, "\""), "no string: {text}");
    let mut units = Vec::new();
    while !skip(text, "\"") {
        if skip(text, "\\u") {
            units.push(u16::from_str_radix(take(text, 4), 16).expect("four hex digits"));
        } else {
            units.extend(take(text, 1).encode_utf16());
        }
    }
    String::from_utf16_lossy(&units)
}

pub fn unhex(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hex digits");
    (0..text.len()).step_by(2).map(digit).collect()
}

/// The bytes of a value, written from the description of the format and not with the crate under test.
pub fn reference(value: &Value, of: &Type, schema: &Schema, to: &mut Vec<u8>) {
    match (value, of) {
        (Value::Null, _) => to.extend((-1_i32).to_be_bytes()),
        (Value::Bool(value), _) => to.push(u8::from(*value)),
        (Value::Int(value), _) => to.extend(value.to_be_bytes()),
        (Value::Long(value), _) => to.extend(value.to_be_bytes()),
        (Value::Text(value), _) => {
            let mut bytes = Vec::new();
            for c in value.chars() {
                match u32::from(c).checked_sub(0x1_0000) {
                    None => bytes.extend(c.to_string().into_bytes()),
                    // Java writes each half of a surrogate pair as if it were a character of its own.
                    Some(above) => {
                        for half in [0xD800 + (above >> 10), 0xDC00 + (above & 0x3FF)] {
                            let tail = |shift: u32| 0x80 | (half >> shift & 0x3F) as u8;
                            bytes.extend([0xE0 | (half >> 12) as u8, tail(6), tail(0)]);
                        }
                    }
                }
            }
            reference(&Value::Bytes(bytes), &Type::Bytes, schema, to);
        }
        (Value::Bytes(value), _) => {
            to.extend((value.len() as i32).to_be_bytes());
            to.extend(value);
        }
        (Value::List(items), Type::Vector(item)) => {
            to.extend((items.len() as i32).to_be_bytes());
            items.iter().for_each(|value| reference(value, item, schema, to));
        }
        (Value::Record(values), Type::Record(name)) => {
            for (value, field) in values.iter().zip(schema.fields(name)) {
                reference(value, field, schema, to);
            }
        }
        (value, of) => panic!("{value:?} is no {of:?}"),
    }
}

/// The value that is read back after Java, or this crate, has written it: the halves of characters above U+FFFF do not survive.
pub fn reread(value: &Value) -> Value {
    match value {
        Value::Text(text) => {
            let halves =
                |c: char| if c > '\u{ffff}' { "\u{fffd}\u{fffd}".into() } else { c.to_string() };
            Value::Text(text.chars().map(halves).collect())
        }
        Value::List(items) => Value::List(items.iter().map(reread).collect()),
        Value::Record(fields) => Value::Record(fields.iter().map(reread).collect()),
        other => other.clone(),
    }
}

/// A field of the crate under test, to and from a [`Value`].
pub trait Field<'a>: Sized {
    fn build(value: &'a Value) -> Self;
    fn value(&self) -> Value;
}

macro_rules! plain_fields {
    ($($ty:ty: $variant:ident)*) => {$(
        impl Field<'_> for $ty {
            fn build(value: &Value) -> Self {
                match value {
                    Value::$variant(value) => *value,
                    other => panic!("{other:?} is no {}", stringify!($ty)),
                }
            }
            fn value(&self) -> Value {
                Value::$variant(*self)
            }
        }
    )*};
}
plain_fields!(bool: Bool i32: Int i64: Long);

impl<'a> Field<'a> for Ustring<'a> {
    fn build(value: &'a Value) -> Self {
        match value {
            Value::Null => None,
            Value::Text(text) => Some(Cow::Borrowed(text)),
            other => panic!("{other:?} is no string"),
        }
    }
    fn value(&self) -> Value {
        self.as_ref().map_or(Value::Null, |text| Value::Text(text.clone().into_owned()))
    }
}

impl<'a> Field<'a> for Buffer<'a> {
    fn build(value: &'a Value) -> Self {
        match value {
            Value::Null => None,
            Value::Bytes(bytes) => Some(bytes),
            other => panic!("{other:?} is no buffer"),
        }
    }
    fn value(&self) -> Value {
        self.map_or(Value::Null, |bytes| Value::Bytes(bytes.to_vec()))
    }
}

impl<'a, T: Field<'a> + Decode<'a> + Clone> Field<'a> for Vector<'a, T> {
    fn build(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::List(items) => Self::Owned(items.iter().map(T::build).collect()),
            other => panic!("{other:?} is no vector"),
        }
    }
    fn value(&self) -> Value {
        if self.is_null() {
            return Value::Null;
        }
        let items: Vec<_> = self.iter().map(|item| item.value()).collect();
        assert_eq!(items.len(), self.len(), "a vector yields as many items as it claims");
        Value::List(items)
    }
}

/// A decoded record, its encoding, and how much input it took.
pub struct Decoded {
    pub value: Value,
    pub encoded: Vec<u8>,
    pub used: usize,
}

fn decode<'a, T: Field<'a> + Decode<'a> + Encode>(
    bytes: &'a [u8],
) -> Result<Decoded, jute::DecodeError> {
    let mut reader = Reader::new(bytes);
    let record: T = reader.read()?;
    let mut encoded = Vec::new();
    record.encode(&mut encoded);
    Ok(Decoded { value: record.value(), encoded, used: reader.at() })
}

fn encode<'a, T: Field<'a> + Encode>(value: &'a Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    T::build(value).encode(&mut bytes);
    bytes
}

/// One record of the crate under test, its type erased.
pub struct Codec {
    pub name: &'static str,
    pub decode: fn(&[u8]) -> Result<Decoded, jute::DecodeError>,
    pub encode: fn(&Value) -> Vec<u8>,
}

macro_rules! records {
    ($($module:ident $name:ident $(<$life:lifetime>)? { $($field:ident),* })*) => {
        $(impl<'a> Field<'a> for jute::$module::$name $(<$life>)? {
            fn build(value: &'a Value) -> Self {
                let Value::Record(fields) = value else { panic!("{value:?} is no record") };
                let mut fields = fields.iter();
                let built = Self { $($field: Field::build(fields.next().expect("as many fields as Java's")),)* };
                assert!(fields.next().is_none(), "Java's {} has more fields", stringify!($name));
                built
            }
            fn value(&self) -> Value {
                Value::Record(vec![$(self.$field.value()),*])
            }
        })*
        pub const CODECS: &[Codec] = &[$(Codec {
            name: stringify!($name),
            decode: |bytes| decode::<jute::$module::$name>(bytes),
            encode: |value| encode::<jute::$module::$name>(value),
        }),*];
    };
}

/// The codec of the record that Java calls `name`; ours differ in the case of acronyms only.
pub fn codec(name: &str) -> &'static Codec {
    let found = CODECS.iter().find(|codec| codec.name.eq_ignore_ascii_case(name));
    found.unwrap_or_else(|| panic!("no record for Java's {name}"))
}

records! {
    data Id<'a> { scheme, id }
    data Acl<'a> { perms, id }
    data Stat { czxid, mzxid, ctime, mtime, version, cversion, aversion, ephemeral_owner, data_length, num_children, pzxid }
    data StatPersisted { czxid, mzxid, ctime, mtime, version, cversion, aversion, ephemeral_owner, pzxid }
    data ClientInfo<'a> { auth_scheme, user }
    proto ConnectRequest<'a> { protocol_version, last_zxid_seen, timeout_ms, session_id, password, read_only }
    proto ConnectResponse<'a> { protocol_version, timeout_ms, session_id, password, read_only }
    proto SetWatches<'a> { relative_zxid, data_watches, exist_watches, child_watches }
    proto SetWatches2<'a> { relative_zxid, data_watches, exist_watches, child_watches, persistent_watches, persistent_recursive_watches }
    proto RequestHeader { xid, kind }
    proto MultiHeader { kind, done, err }
    proto AuthPacket<'a> { kind, scheme, auth }
    proto ReplyHeader { xid, zxid, err }
    proto GetDataRequest<'a> { path, watch }
    proto SetDataRequest<'a> { path, data, version }
    proto ReconfigRequest<'a> { joining_servers, leaving_servers, new_members, cur_config_id }
    proto SetDataResponse { stat }
    proto GetSaslRequest<'a> { token }
    proto SetSaslRequest<'a> { token }
    proto SetSaslResponse<'a> { token }
    proto CreateRequest<'a> { path, data, acl, flags }
    proto CreateTtlRequest<'a> { path, data, acl, flags, ttl }
    proto DeleteRequest<'a> { path, version }
    proto GetChildrenRequest<'a> { path, watch }
    proto GetAllChildrenNumberRequest<'a> { path }
    proto GetChildren2Request<'a> { path, watch }
    proto CheckVersionRequest<'a> { path, version }
    proto GetMaxChildrenRequest<'a> { path }
    proto GetMaxChildrenResponse { max }
    proto SetMaxChildrenRequest<'a> { path, max }
    proto SyncRequest<'a> { path }
    proto SyncResponse<'a> { path }
    proto GetAclRequest<'a> { path }
    proto SetAclRequest<'a> { path, acl, version }
    proto SetAclResponse { stat }
    proto AddWatchRequest<'a> { path, mode }
    proto WatcherEvent<'a> { kind, state, path }
    proto ErrorResponse { err }
    proto CreateResponse<'a> { path }
    proto Create2Response<'a> { path, stat }
    proto ExistsRequest<'a> { path, watch }
    proto ExistsResponse { stat }
    proto GetDataResponse<'a> { data, stat }
    proto GetChildrenResponse<'a> { children }
    proto GetAllChildrenNumberResponse { total_number }
    proto GetChildren2Response<'a> { children, stat }
    proto GetAclResponse<'a> { acl, stat }
    proto CheckWatchesRequest<'a> { path, kind }
    proto RemoveWatchesRequest<'a> { path, kind }
    proto GetEphemeralsRequest<'a> { prefix_path }
    proto GetEphemeralsResponse<'a> { ephemerals }
    proto WhoAmIResponse<'a> { client_info }
    quorum LearnerInfo { server_id, protocol_version, config_version }
    quorum QuorumPacket<'a> { kind, zxid, data, auth_info }
    quorum QuorumAuthPacket<'a> { magic, status, token }
    persistence FileHeader { magic, version, db_id }
    txn TxnDigest { version, tree_digest }
    txn TxnHeader { client_id, cxid, zxid, time, kind }
    txn CreateTxnV0<'a> { path, data, acl, ephemeral }
    txn CreateTxn<'a> { path, data, acl, ephemeral, parent_cversion }
    txn CreateTtlTxn<'a> { path, data, acl, parent_cversion, ttl }
    txn CreateContainerTxn<'a> { path, data, acl, parent_cversion }
    txn DeleteTxn<'a> { path }
    txn SetDataTxn<'a> { path, data, version }
    txn CheckVersionTxn<'a> { path, version }
    txn SetAclTxn<'a> { path, acl, version }
    txn SetMaxChildrenTxn<'a> { path, max }
    txn CreateSessionTxn { timeout_ms }
    txn CloseSessionTxn<'a> { paths }
    txn ErrorTxn { err }
    txn Txn<'a> { kind, data }
    txn MultiTxn<'a> { txns }
}
